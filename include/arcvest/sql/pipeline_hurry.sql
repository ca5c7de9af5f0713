-- a row is a waiting job that a person wants done now; it leaves its batch, which it would hold up
UPDATE job_queue AS q
SET priority = greatest(q.priority, CAST(:priority AS integer)),
    next_run_at = least(q.next_run_at, clock_timestamp()),
    correlation_id = NULL
WHERE q.id = CAST(:job AS uuid)
  AND q.status = 'pending'
