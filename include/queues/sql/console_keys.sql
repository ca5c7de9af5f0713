-- a row is a row of one status that the filter leaves, by its key and beyond one
SELECT q.{key} AS row_key
FROM {table} AS q
WHERE {matches}
    AND q.{status}::text = CAST(:acted_on AS text)
    AND (CAST(:after_key AS {key_type}) IS NULL OR q.{key} > CAST(:after_key AS {key_type}))
ORDER BY q.{key}
LIMIT :at_most
