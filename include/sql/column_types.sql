-- a row is a column of the table, in the table's order, with its type as SQL writes it and whether it is computed
SELECT a.attname::text AS attname,
       format_type(a.atttypid, a.atttypmod) AS format_type,
       a.attgenerated <> '' AS is_computed
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'public'
  AND c.relname = :table
  AND a.attnum > 0
  AND NOT a.attisdropped
ORDER BY a.attnum
