-- a row is a job that was done long ago
INSERT INTO bench_queue (job_type, status, attempts, next_run_at, started_at, completed_at)
SELECT 'job', 'completed', 1, t.at, t.at, t.at
FROM generate_series(1, CAST(:jobs AS integer)) AS n,
     LATERAL (SELECT now() - interval '90 days' + n * interval '1 second' AS at) AS t
