-- a row is a claim of this owner that is alive
UPDATE {table} AS q
SET heartbeat_at = clock_timestamp()
WHERE q.{status} = {claimed_word}
  AND q.claimed_by = :owner
RETURNING q.{key}
