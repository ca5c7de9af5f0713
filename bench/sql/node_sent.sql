-- a row is a mail that the provider took
UPDATE email_log
SET status = 'sent',
    sent_at = now(),
    provider_message_id = :provider_id,
    updated_at = now()
WHERE id = :id
