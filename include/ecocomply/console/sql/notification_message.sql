-- one row: the message of one claim of a notification, or of the digest that it stands in
SELECT a.message, b.provider
FROM notifications AS n
JOIN email_attempts AS a ON a.notification_id = n.id OR a.digest_id = n.digest_id
JOIN email_batches AS b ON b.id = a.batch_id
WHERE n.id = :id
  AND a.batch_id = :batch_id
  AND a.position = :position
