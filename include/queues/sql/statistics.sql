-- a row is a status with its number of rows, and for due ones how many are due now and since when
SELECT q.{status}::text AS status,
       count(*) AS rows,
       count(*) FILTER (WHERE q.{status} = {due_word} AND {due_at} <= now()) AS due_now,
       min({due_at}) FILTER (WHERE q.{status} = {due_word} AND {due_at} <= now()) AS oldest_due
FROM {table} AS q
GROUP BY q.{status}
ORDER BY 1
