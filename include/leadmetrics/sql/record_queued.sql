-- a row is a notification with what the queue said of it
UPDATE notification_outbox AS o
SET status = s.status,
    error = s.reason,
    -- what surely is not in the queue may go another way
    sink = CASE WHEN s.status = 'pending' AND s.certain THEN NULL ELSE o.sink END,
    begun_at = CASE WHEN s.status = 'pending' AND s.certain THEN NULL ELSE o.begun_at END,
    finished_at = CASE WHEN s.status <> 'pending' THEN clock_timestamp() END
FROM unnest(
    CAST(:ids AS uuid[]), CAST(:statuses AS text[]), CAST(:reasons AS text[]), CAST(:certain AS boolean[])
) AS s (id, status, reason, certain)
WHERE o.id = s.id
  AND o.status = 'pending'
RETURNING o.id, o.status::text AS status
