-- a row is a row of the queue: what every queue has, then all its columns as JSON in their order
-- As text: what nests too deep for a reader must not keep the rest from being shown.
SELECT
    q.{status}::text AS row_status,
    {planned} AS row_planned,
    {due_at} AS row_due,
    {finished} AS row_finished,
    coalesce(q.{attempts}, 0) AS row_attempts,
    coalesce({max_attempts}, :attempt_limit) AS row_attempt_limit,
    q.{error} AS row_error,
    {kind}::text AS row_kind,
    q.{key}::text AS row_key,
    q.claimed_by AS row_owner,
    q.heartbeat_at AS row_heartbeat,
    row_to_json(q)::text AS row_columns
FROM {table} AS q
WHERE q.{key} = CAST(:row_key AS {key_type})
