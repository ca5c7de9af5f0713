-- a row is a column of the table's primary key, in the key's order; of a materialised view's unique index
SELECT a.attname::text
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, place) ON true
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
WHERE (i.indisprimary OR (i.indisunique AND c.relkind = 'm'))
  AND n.nspname = 'public'
  AND c.relname = :table
ORDER BY k.place
