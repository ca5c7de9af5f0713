-- a row is a job that failed for good in the last 24 hours
SELECT q.id, q.job_type, q.attempts, q.max_attempts, q.last_error, q.created_at, q.completed_at
FROM job_queue AS q
WHERE q.status = 'failed'
  AND q.completed_at > now() - interval '24 hours'
ORDER BY q.completed_at DESC, q.id
LIMIT :limit
