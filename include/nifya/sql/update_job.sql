-- one row with the id of a waiting job that a person changed; its tries begin anew
UPDATE scheduled_jobs
SET type = :type,
    data = CAST(:data AS jsonb),
    schedule = CAST(:schedule AS jsonb),
    next_run_at = :next_run_at,
    retry_at = NULL,
    attempts = 0,
    error = NULL,
    updated_at = clock_timestamp()
WHERE id = :job_id
  AND status = 'pending'
RETURNING id
