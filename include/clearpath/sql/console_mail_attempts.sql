-- a row is a claim of one mail: the message as it was stored, and what the provider said of it
SELECT
    a.batch_id,
    a.position,
    a.message,
    a.frame,
    f.content,
    a.outcome::text AS outcome,
    a.reason,
    a.provider_message_id,
    a.answered_at,
    b.provider,
    b.run_id,
    b.claimed_at
FROM email_attempts AS a
JOIN email_batches AS b ON b.id = a.batch_id
LEFT JOIN email_frames AS f ON f.name = a.frame
WHERE a.email_id = :mail_id
ORDER BY b.claimed_at DESC, a.batch_id, a.position
LIMIT :limit
