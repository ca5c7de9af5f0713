-- a row is one of these rows that still has the status and matches, held from now on; what another session holds is not
SELECT q.{key} AS row_key
FROM {table} AS q
WHERE q.{key} = ANY (CAST(:keys AS {key_type}[]))
    AND q.{status}::text = CAST(:acted_on AS text)
    AND {matches}
ORDER BY q.{key}
FOR UPDATE SKIP LOCKED
