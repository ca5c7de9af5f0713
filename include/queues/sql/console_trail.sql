-- a row is a change of status of one row of the queue, the latest first
SELECT a.moved_at, a.from_status, a.to_status, a.attempt, a.claimed_by, a.actor, a.reason
FROM queue_audit AS a
WHERE a.queue = {table_word} AND a.row_key = CAST(:row_key AS text)
ORDER BY a.id DESC
LIMIT :limit
