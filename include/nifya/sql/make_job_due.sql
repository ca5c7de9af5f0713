-- a row is a job that waits and is due now, whenever it was planned; the planned time stays
UPDATE scheduled_jobs
SET retry_at = now(),
    updated_at = clock_timestamp()
WHERE id = :job_id
  AND status = 'pending'
RETURNING id
