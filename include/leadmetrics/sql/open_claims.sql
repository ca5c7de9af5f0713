-- a row is a message of a batch that has an answer outstanding; the whole batch goes out again as it was
SELECT a.batch_id::text, a.position, a.begun_at, a.outcome IS NOT NULL AS answered
FROM notification_attempts AS a
WHERE a.batch_id IN (SELECT batch_id FROM notification_attempts WHERE outcome IS NULL)
ORDER BY min(a.claimed_at) OVER (PARTITION BY a.batch_id), a.batch_id, a.position
