-- a row is a finished row that has been kept long enough; the audit trail of it goes too
WITH old AS MATERIALIZED (
    SELECT q.{key} AS old_key
    FROM {table} AS q
    WHERE q.{status} IN ({ended_words})
      AND coalesce({finished}, {due_at}) < CAST(:before AS timestamptz)
    ORDER BY q.{key}
    LIMIT :at_most
    FOR UPDATE SKIP LOCKED
),
trail AS (
    DELETE FROM queue_audit AS a
    USING old
    WHERE a.queue = {table_word} AND a.row_key = old.old_key::text
)
DELETE FROM {table} AS q
USING old
WHERE q.{key} = old.old_key
RETURNING q.{key}
