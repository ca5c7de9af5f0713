-- one row: the key of the row that a claim of one would take
SELECT q.{key}
FROM {table} AS q
WHERE q.{status} = {due_word}
  AND {due_at} <= least(now(), CAST(:not_after AS timestamptz))
  {beyond}
  {of_kinds}
  {without}
  {in_stage}
ORDER BY {order}
LIMIT 1
FOR UPDATE OF q SKIP LOCKED
