-- one row with the latest instant that the job has worked up to
SELECT max(last_run_at)
FROM jobs_state
WHERE job_name = :job
