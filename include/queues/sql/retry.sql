-- a row is a failed row that a person wants tried again, from its first attempt
UPDATE {table} AS q
SET {status} = {due_word},
    {attempts} = 0,
    {again} = clock_timestamp()
    {retried_stamps}
WHERE q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {failed_word}
RETURNING q.{key}
