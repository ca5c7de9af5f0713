-- a row is a kind of the queue's rows, the most frequent first
SELECT {kind}::text AS kind, count(*) AS rows
FROM {table} AS q
WHERE {kind} IS NOT NULL
GROUP BY 1
ORDER BY 2 DESC, 1
LIMIT :limit
