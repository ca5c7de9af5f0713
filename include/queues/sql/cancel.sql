-- a row is a due row that a person called off
UPDATE {table} AS q
SET {status} = {cancelled_word}
    {done_stamps}
WHERE q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {due_word}
RETURNING q.{key}
