-- a row is a notification of which no message can be made
UPDATE notification_outbox AS o
SET status = 'failed',
    error = s.reason,
    finished_at = clock_timestamp()
FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS s (id, reason)
WHERE o.id = s.id
  AND o.status = 'pending'
  AND o.batch_id IS NULL
