-- a row is a claimed row that a person takes from its worker; what that worker still says is out of date
UPDATE {table} AS q
SET {status} = {due_word},
    {again} = clock_timestamp(),
    claimed_by = NULL,
    heartbeat_at = NULL
WHERE q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {claimed_word}
RETURNING q.{key}
