SELECT c.relname
FROM pg_class AS c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT c.relrowsecurity
