-- one row: the running job, held by another task of its run from here on; the attempt is the same
UPDATE background_jobs AS q
SET claimed_by = :owner,
    heartbeat_at = clock_timestamp(),
    dag_run_id = :dag_run_id
WHERE q.id = :id
  AND q.status = 'RUNNING'
RETURNING q.*
