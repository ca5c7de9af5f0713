-- a row is a job that ended long enough ago and has no dead letter; the trail of it goes too
WITH old AS MATERIALIZED (
    SELECT q.id
    FROM background_jobs AS q
    WHERE q.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
      AND (
          q.completed_at < CAST(:before AS timestamptz)
          OR (q.completed_at IS NULL AND q.updated_at < CAST(:before AS timestamptz))
      )
      AND NOT EXISTS (SELECT FROM dead_letter_queue AS d WHERE d.job_id = q.id)
    ORDER BY q.id
    LIMIT :at_most
    FOR UPDATE
),
trail AS (
    DELETE FROM queue_audit AS a
    USING old
    WHERE a.queue = 'background_jobs' AND a.row_key = old.id::text
)
DELETE FROM background_jobs AS q
USING old
WHERE q.id = old.id
RETURNING q.id
