-- a row is a job whose queue waits for its provider until an instant
WITH known AS (
    UPDATE jobs_state
    SET paused_until = :until,
        pause_reason = :reason
    WHERE job_name = :name
)
INSERT INTO jobs_state (job_name, paused_until, pause_reason)
SELECT :name, :until, :reason
WHERE NOT EXISTS (SELECT 1 FROM jobs_state WHERE job_name = :name)
ON CONFLICT DO NOTHING
