-- a row is a row of the queue that the filter leaves, the latest planned first, those without a date last
SELECT
    q.{key}::text AS row_key,
    {kind}::text AS kind,
    q.{status}::text AS status,
    {planned} AS planned,
    coalesce({planned}::text, '') AS planned_text,
    {due_at} AS due_at,
    coalesce(q.{attempts}, 0) AS attempts,
    coalesce({max_attempts}, :attempt_limit) AS attempt_limit,
    {finished} AS finished,
    left(q.{error}, 300) AS error
FROM {table} AS q
WHERE {matches}
    AND (
        CAST(:after_key AS {key_type}) IS NULL
        OR CASE
            WHEN CAST(:after_planned AS timestamptz) IS NULL
                THEN {planned} IS NULL AND q.{key} < CAST(:after_key AS {key_type})
            ELSE {planned} IS NULL
                OR ({planned}, q.{key}) < (CAST(:after_planned AS timestamptz), CAST(:after_key AS {key_type}))
        END
    )
ORDER BY {planned} DESC NULLS LAST, q.{key} DESC
LIMIT :limit
