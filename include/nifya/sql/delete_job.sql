-- one row with the id of a job that is deleted; one that is being worked on stays
DELETE FROM scheduled_jobs
WHERE id = :job_id
  AND status <> 'processing'
RETURNING id
