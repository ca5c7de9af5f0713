-- a row is a column of the table whose values an identity sequence makes
SELECT a.attname::text
FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'public'
  AND c.relname = :table
  AND a.attidentity <> ''
