-- a row is a reminder that is called off, unless it has begun to go out meanwhile
WITH overtaken AS (
    SELECT o.id
    FROM notification_outbox AS o
    WHERE o.id = ANY (CAST(:ids AS uuid[]))
      AND o.status = 'pending'
      AND o.begun_at IS NULL
      AND o.batch_id IS NULL
    ORDER BY o.id
    FOR UPDATE
)
UPDATE notification_outbox AS o
SET status = 'cancelled',
    finished_at = clock_timestamp(),
    error = said.reason
FROM overtaken
JOIN unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS said (id, reason) ON said.id = overtaken.id
WHERE o.id = overtaken.id
RETURNING o.id, o.error AS reason
