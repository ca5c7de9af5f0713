-- one row: when the platform took over a database in use; before all time where it made the database itself
CREATE OR REPLACE VIEW adoption AS
SELECT coalesce(max(b.at), '-infinity') AS at,
       coalesce(CAST(max(b.at) AT TIME ZONE 'UTC' AS date), '-infinity') AS day
FROM baseline AS b
WHERE b.name = 'adoption'
