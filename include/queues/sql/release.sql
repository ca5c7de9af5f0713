-- a row is a claim that its worker gives back untouched: due again as it was, and the attempt was none
UPDATE {table} AS q
SET {status} = {due_word},
    {attempts} = q.{attempts} - 1,
    claimed_by = NULL,
    heartbeat_at = NULL
    {retried_stamps}
FROM unnest(CAST(:keys AS {key_type}[]), CAST(:attempts AS integer[])) AS said (said_key, attempt)
WHERE q.{key} = said.said_key
  -- said as well: else all claims, and dead ones that a snapshot keeps, would be read for a few
  AND q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {claimed_word}
  AND q.{attempts} = said.attempt
  AND q.claimed_by = :owner
RETURNING q.{key}
