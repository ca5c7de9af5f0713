-- a row is a trigger of the table, as a definition for the temporary table of the same name
SELECT replace(
        pg_get_triggerdef(t.oid),
        format(' ON %I.%I ', n.nspname, c.relname),
        format(' ON pg_temp.%I ', c.relname)
    )
FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'public'
  AND c.relname = :table
  AND NOT t.tgisinternal
ORDER BY t.tgname
