-- one row: the waiting job, claimed by its id; when its first attempt began stays
UPDATE background_jobs AS q
SET status = 'RUNNING',
    attempts = coalesce(q.attempts, 0) + 1,
    claimed_by = :owner,
    heartbeat_at = clock_timestamp(),
    started_at = CASE
        WHEN coalesce(q.attempts, 0) = 0 OR q.started_at IS NULL THEN clock_timestamp()
        ELSE q.started_at
    END,
    completed_at = NULL,
    dag_run_id = :dag_run_id,
    as_of = coalesce(q.as_of, CAST(:as_of AS timestamptz)),
    updated_at = clock_timestamp()
WHERE q.id = :id
  AND q.status = 'PENDING'
RETURNING q.*
