-- a row is a job whose worker was not heard of again, or one that has failed
UPDATE background_jobs AS j
SET status = 'RUNNING', attempts = 1, started_at = j.scheduled_for, heartbeat_at = j.scheduled_for
FROM generate_series(1, least(2, pg_temp.companies())) AS n, (VALUES ('lost'), ('old')) AS kinds (kind)
WHERE j.id = pg_temp.make_id(kind || ' job', n)
