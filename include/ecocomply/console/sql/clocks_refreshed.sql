-- one row: when the dashboard was last refreshed
SELECT q.completed_at
FROM background_jobs AS q
WHERE q.job_type = 'REFRESH_COMPLIANCE_DASHBOARD'
  AND q.status = 'COMPLETED'
  AND q.completed_at IS NOT NULL
ORDER BY q.completed_at DESC
LIMIT 1
