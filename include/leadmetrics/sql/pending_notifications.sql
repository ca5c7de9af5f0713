-- a row is a notification that waits to be handed to this sink, the oldest first
SELECT o.id, o.template_slug, o.recipient, o.data
FROM notification_outbox AS o
WHERE o.status = 'pending'
  AND o.batch_id IS NULL
  AND coalesce(o.sink, :sink) = :sink
ORDER BY o.due_at, o.dedupe_key
