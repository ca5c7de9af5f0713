-- a row is a message of a batch of digests that has an answer outstanding; the whole batch goes out again as it was
SELECT a.batch_id::text, a.position, a.begun_at, a.outcome IS NOT NULL AS answered
FROM email_attempts AS a
JOIN email_batches AS b ON b.id = a.batch_id
WHERE a.batch_id IN (SELECT batch_id FROM email_attempts WHERE outcome IS NULL)
ORDER BY b.claimed_at, b.id, a.position
