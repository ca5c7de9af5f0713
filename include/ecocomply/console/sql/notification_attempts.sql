-- a row is a claim of a notification, or of the digest that it stands in, the latest first
SELECT a.batch_id, a.position, a.message, a.begun_at, a.outcome::text AS outcome, a.reason, a.provider_message_id,
       a.answered_at, a.digest_id, b.provider, b.run_id, b.claimed_at
FROM notifications AS n
JOIN email_attempts AS a ON a.notification_id = n.id OR a.digest_id = n.digest_id
JOIN email_batches AS b ON b.id = a.batch_id
WHERE n.id = :id
ORDER BY b.claimed_at DESC, a.batch_id, a.position
LIMIT :limit
