-- one row with the instant from which the lab is asked
SELECT max(last_poll_timestamp)
FROM jobs_state
WHERE job_name = :job
