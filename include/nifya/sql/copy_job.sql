-- one row with the id of a job that does once, now, what another one does; one that is open already is enough
WITH known AS (
    SELECT c.id
    FROM scheduled_jobs AS c
    WHERE c.copy_of = :job_id
      AND c.status IN ('pending', 'processing')
    ORDER BY c.created_at, c.id
    LIMIT 1
),
made AS (
    INSERT INTO scheduled_jobs (type, data, next_run_at, created_by, copy_of)
    SELECT j.type, j.data, now(), j.created_by, j.id
    FROM scheduled_jobs AS j
    WHERE j.id = :job_id
      AND j.status IN ('pending', 'completed')
      AND NOT EXISTS (SELECT FROM known)
    RETURNING id
)
SELECT id FROM made
UNION ALL
SELECT id FROM known
