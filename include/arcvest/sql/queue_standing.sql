-- a row is a type of job that waits though it is due, or that failed in the last 24 hours
SELECT 'due' AS status, q.job_type, count(*) AS jobs, q.job_type = ANY (CAST(:types AS text[])) AS ours
FROM job_queue AS q
WHERE q.status = 'pending'
  AND q.next_run_at <= now()
GROUP BY q.job_type
UNION ALL
SELECT 'failed in the last 24 hours', q.job_type, count(*), true
FROM job_queue AS q
WHERE q.status = 'failed'
  AND q.completed_at > now() - interval '24 hours'
GROUP BY q.job_type
ORDER BY 1, 2
