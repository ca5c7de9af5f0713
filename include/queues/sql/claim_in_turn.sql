-- a row is a due row that is claimed now, of the highest priority that is to be had, tenants in turn, each its oldest
-- The tenants are read by jumps in the index, so that one tenant's thousand rows cost no more than its first. The
-- priority is compared with a value and not joined: else every due row would be read, and sorted by tenant.
WITH RECURSIVE top AS (
    SELECT {rank} AS top_rank
    FROM {table} AS q
    WHERE q.{status} = {due_word}
      AND {due_at} <= least(now(), CAST(:not_after AS timestamptz))
      {of_kinds}
      {without}
      {in_stage}
    ORDER BY {rank}
    LIMIT 1
    -- what another session holds is not to be had, and must not stand before lower priorities
    FOR UPDATE OF q SKIP LOCKED
),
tenants AS (
    (
        SELECT {turn} AS turn
        FROM {table} AS q
        WHERE q.{status} = {due_word} AND {rank} = (SELECT top_rank FROM top)
        ORDER BY {turn}
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT {turn}
        FROM {table} AS q
        WHERE q.{status} = {due_word} AND {rank} = (SELECT top_rank FROM top) AND {turn} > tenants.turn
        ORDER BY {turn}
        LIMIT 1
    )
    FROM tenants
    WHERE tenants.turn IS NOT NULL
),
share AS (
    SELECT greatest(1, ceil(CAST(:at_most AS numeric) / greatest(1, count(turn)))) AS rows_each FROM tenants
),
heads AS MATERIALIZED (
    SELECT tenants.turn, head.head_key, head.head_due, head.lost, head.place
    FROM tenants
    CROSS JOIN LATERAL (
        SELECT locked.head_key, locked.head_due, locked.lost,
               row_number() OVER (ORDER BY locked.head_due, locked.head_key) AS place
        FROM (
            SELECT q.{key} AS head_key, {due_at} AS head_due, {lost} AS lost
            FROM {table} AS q
            WHERE q.{status} = {due_word}
              AND {rank} = (SELECT top_rank FROM top)
              AND {turn} = tenants.turn
              AND {due_at} <= least(now(), CAST(:not_after AS timestamptz))
              {of_kinds}
              {without}
              {in_stage}
            ORDER BY {due_at}, q.{key}
            LIMIT (SELECT rows_each FROM share)
            FOR UPDATE OF q SKIP LOCKED
        ) AS locked
    ) AS head
),
-- a worker goes on with the tenant after the last that it served; one that begins, with the oldest row
placed AS (
    SELECT head_key, lost,
           row_number() OVER in_turn AS place,
           bool_or(lost) OVER (in_turn ROWS UNBOUNDED PRECEDING) AS from_lost
    FROM heads
    WINDOW in_turn AS (
        ORDER BY place,
                 turn <= CAST(:after_turn AS text),
                 CASE WHEN CAST(:after_turn AS text) IS NOT NULL THEN turn END,
                 head_due,
                 head_key
    )
),
-- a row that was lost may have killed its worker, and must not take others with it: it is claimed alone
candidate AS MATERIALIZED (
    SELECT head_key AS candidate_key, place
    FROM placed
    WHERE place <= :at_most
      AND (place = 1 OR NOT from_lost)
)
UPDATE {table} AS q
SET {status} = {claimed_word},
    {attempts} = coalesce(q.{attempts}, 0) + 1,
    claimed_by = :owner,
    heartbeat_at = clock_timestamp()
    {claimed_stamps}
FROM candidate
WHERE q.{key} = candidate.candidate_key
RETURNING {returned}, {turn} AS claim_turn, candidate.place AS claim_place
