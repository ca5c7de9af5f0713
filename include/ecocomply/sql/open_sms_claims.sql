-- a row is a message of a batch that has an answer outstanding, most urgent first; the whole batch goes out as it was
SELECT a.batch_id::text, a.position, a.begun_at, a.outcome IS NOT NULL AS answered
FROM email_attempts AS a
JOIN email_batches AS b ON b.id = a.batch_id
JOIN notifications AS n ON n.id = a.notification_id
WHERE a.batch_id IN (SELECT batch_id FROM email_attempts WHERE outcome IS NULL)
  AND b.provider = 'ecocomply_sms'
ORDER BY max(n.urgency) OVER (PARTITION BY a.batch_id) DESC, b.claimed_at, b.id, a.position
