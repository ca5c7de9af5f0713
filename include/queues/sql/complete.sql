-- a row is a claim that is done; one that is out of date finds nothing to change
UPDATE {table} AS q
SET {status} = {done_word},
    claimed_by = NULL,
    heartbeat_at = NULL
    {done_stamps}
FROM unnest(CAST(:keys AS {key_type}[]), CAST(:attempts AS integer[])) AS said (said_key, attempt)
WHERE q.{key} = said.said_key
  -- said as well: else all claims, and dead ones that a snapshot keeps, would be read for a few
  AND q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {claimed_word}
  AND q.{attempts} = said.attempt
  AND q.claimed_by = :owner
RETURNING q.{key}
