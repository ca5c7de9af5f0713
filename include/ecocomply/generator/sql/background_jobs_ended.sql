-- every third fails, the others are done
UPDATE background_jobs AS j
SET status = CASE WHEN n % 3 = 1 THEN 'FAILED' ELSE 'COMPLETED' END,
    error_message = CASE WHEN n % 3 = 1 THEN 'the file store did not answer' END,
    completed_at = j.started_at + interval '40 seconds'
FROM generate_series(0, pg_temp.companies()) AS n
WHERE j.id = pg_temp.make_id('job', n)
