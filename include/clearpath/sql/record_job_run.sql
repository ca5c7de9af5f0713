-- a row is a job with the latest instant that it has worked up to
WITH known AS (
    UPDATE jobs_state
    SET last_run_at = greatest(last_run_at, :as_of)
    WHERE job_name = :job
      AND last_run_at IS DISTINCT FROM greatest(last_run_at, :as_of)
)
INSERT INTO jobs_state (job_name, last_run_at)
SELECT :job, :as_of
WHERE NOT EXISTS (SELECT 1 FROM jobs_state WHERE job_name = :job)
ON CONFLICT DO NOTHING
