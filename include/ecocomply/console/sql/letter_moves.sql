-- a row is a change of status of a job, the latest first
SELECT a.moved_at, a.from_status, a.to_status, a.attempt, a.actor, a.reason
FROM queue_audit AS a
WHERE a.queue = 'background_jobs'
  AND a.row_key = CAST(:job_id AS text)
ORDER BY a.id DESC
LIMIT :limit
