-- a row is a job whose last try was in vain through no fault of its own: the attempt does not count
UPDATE job_queue AS q
SET attempts = greatest(q.attempts - 1, 0),
    next_run_at = greatest(q.next_run_at, clock_timestamp() + make_interval(secs => :seconds))
WHERE q.id = CAST(:job AS uuid)
  AND q.status = 'pending'
