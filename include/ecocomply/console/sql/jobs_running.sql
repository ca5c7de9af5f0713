-- a row is a job that is running by its row, the longest first
SELECT q.id, q.job_type, q.company_id, c.name AS company_name, q.health_status::text AS health_status, q.progress,
       q.started_at, coalesce(q.heartbeat_at, q.last_heartbeat) AS heard_at, q.attempts,
       least(coalesce(q.max_attempts, q.max_retries + 1), q.max_retries + 1) AS attempt_limit, q.dag_run_id
FROM background_jobs AS q
LEFT JOIN companies AS c ON c.id = q.company_id
WHERE q.status = 'RUNNING'
ORDER BY q.started_at NULLS FIRST, q.id
LIMIT :limit
