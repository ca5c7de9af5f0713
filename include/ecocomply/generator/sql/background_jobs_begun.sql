-- each of them begins
UPDATE background_jobs AS j
SET status = 'RUNNING', attempts = 1, started_at = j.scheduled_for
FROM generate_series(0, pg_temp.companies()) AS n
WHERE j.id = pg_temp.make_id('job', n)
