-- a row is a job that waits longer than its delay, since the model's vendor asked for it
UPDATE job_queue AS q
SET next_run_at = greatest(q.next_run_at, CAST(:retry_at AS timestamptz))
WHERE q.id = CAST(:job AS uuid)
  AND q.status = 'pending'
