-- a row is a notification that was sent by itself
UPDATE notifications
SET status = 'SENT', delivery_status = 'SENT', delivery_provider_id = :provider_id, sent_at = clock_timestamp()
WHERE id = :id
