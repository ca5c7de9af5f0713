-- a row is a job that is due, oldest first
INSERT INTO bench_queue (job_type, next_run_at)
SELECT 'job', now() - interval '1 hour' + n * interval '1 millisecond'
FROM generate_series(1, CAST(:jobs AS integer)) AS n
