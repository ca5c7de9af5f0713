-- a row is a due row that is claimed now; the attempt is counted here, so that a killed worker can't hide one
-- MATERIALIZED: inlined under a nested loop, the limit would count anew for each outer row
WITH due AS MATERIALIZED (
    SELECT q.{key} AS due_key, {rank} AS due_rank, {due_at} AS due_at, {lost} AS lost
    FROM {table} AS q
    WHERE q.{status} = {due_word}
      AND {due_at} <= least(now(), CAST(:not_after AS timestamptz))
      {beyond}
      {of_kinds}
      {without}
      {in_stage}
    ORDER BY {order}
    LIMIT :at_most
    FOR UPDATE SKIP LOCKED
),
placed AS (
    SELECT due_key, row_number() OVER in_order AS place, bool_or(lost) OVER in_order AS from_lost
    FROM due
    WINDOW in_order AS (ORDER BY due_rank, due_at, due_key ROWS UNBOUNDED PRECEDING)
),
-- a row that was lost may have killed its worker, and must not take others with it: it is claimed alone
candidate AS MATERIALIZED (
    SELECT due_key AS candidate_key FROM placed WHERE place = 1 OR NOT from_lost
)
UPDATE {table} AS q
SET {status} = {claimed_word},
    {attempts} = coalesce(q.{attempts}, 0) + 1,
    claimed_by = :owner,
    heartbeat_at = clock_timestamp()
    {claimed_stamps}
FROM candidate
WHERE q.{key} = candidate.candidate_key
RETURNING {returned}
