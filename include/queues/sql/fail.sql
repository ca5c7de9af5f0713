-- a row is a claim that failed: it is due again after its delay, or ends; without an owner, whoever's it is
UPDATE {table} AS q
SET {status} = CASE
        WHEN said.ends THEN {failed_word}
        WHEN NOT said.ends THEN {due_word}
        -- never reached: it gives the words the column's type, which may be an enum
        ELSE q.{status}
    END,
    {error} = said.reason,
    {again} = CASE
        WHEN said.ends THEN q.{again}
        -- the transaction's time, by which a claim asks what is due: a preview does both in one
        ELSE now() + said.delay * interval '1 second'
    END,
    claimed_by = NULL,
    heartbeat_at = NULL
    {failed_stamps}
FROM unnest(
    CAST(:keys AS {key_type}[]), CAST(:attempts AS integer[]), CAST(:reasons AS text[]),
    CAST(:ends AS boolean[]), CAST(:delays AS integer[])
) AS said (said_key, attempt, reason, ends, delay)
WHERE q.{key} = said.said_key
  -- said as well: else all claims, and dead ones that a snapshot keeps, would be read for a few
  AND q.{key} = ANY (CAST(:keys AS {key_type}[]))
  AND q.{status} = {claimed_word}
  AND coalesce(q.{attempts}, 0) = said.attempt
  AND (CAST(:owner AS text) IS NULL OR q.claimed_by = :owner)
RETURNING q.{key}
