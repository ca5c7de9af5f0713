-- a row is a status with the number of its rows that the filter leaves
SELECT q.{status}::text AS status, count(*) AS rows
FROM {table} AS q
WHERE {matches}
GROUP BY q.{status}
ORDER BY 1
