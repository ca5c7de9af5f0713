-- a row is a job that this run claimed before its task was ended
SELECT q.id AS claim_key, q.attempts AS claim_attempt, q.max_attempts AS claim_limit, q.claimed_by, q.payload
FROM job_queue AS q
WHERE q.status = 'processing'
  AND q.job_type = :job_type
  AND starts_with(q.claimed_by, :run)
ORDER BY q.started_at, q.id
LIMIT 1
