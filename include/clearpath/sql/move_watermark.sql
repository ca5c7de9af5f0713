-- a row is the lab poll with the instant from which it will ask next; it never moves back
WITH known AS (
    UPDATE jobs_state
    SET last_poll_timestamp = :upto
    WHERE job_name = :job
      AND (last_poll_timestamp IS NULL OR last_poll_timestamp < :upto)
)
INSERT INTO jobs_state (job_name, last_poll_timestamp)
SELECT :job, :upto
WHERE NOT EXISTS (SELECT 1 FROM jobs_state WHERE job_name = :job)
ON CONFLICT DO NOTHING
