-- a row is the name of a table that this transaction has inserted into, updated or deleted from
SELECT relname::text
FROM pg_stat_xact_user_tables
WHERE schemaname = 'public'
  AND n_tup_ins + n_tup_upd + n_tup_del > 0
ORDER BY relname
