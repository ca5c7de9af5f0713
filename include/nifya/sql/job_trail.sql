-- a row is a change of a job's status, the latest first
SELECT a.moved_at, a.from_status, a.to_status, a.attempt, a.actor, a.reason
FROM queue_audit AS a
WHERE a.queue = 'scheduled_jobs'
  AND a.row_key = :job_id
ORDER BY a.id DESC
LIMIT :limit
