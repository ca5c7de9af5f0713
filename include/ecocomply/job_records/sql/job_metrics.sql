-- a row is how the jobs of one type did that were made in the period
WITH made AS (
    SELECT q.job_type, q.status::text AS status,
           extract(EPOCH FROM q.completed_at - q.started_at) * 1000 AS duration_ms,
           EXISTS (SELECT FROM dead_letter_queue AS d WHERE d.job_id = q.id) AS is_dead
    FROM background_jobs AS q
    WHERE q.created_at >= CAST(:since AS timestamptz)
      AND q.created_at < CAST(:until AS timestamptz)
)
SELECT job_type,
       count(*) AS total_jobs,
       count(*) FILTER (WHERE status = 'COMPLETED') AS successful_jobs,
       count(*) FILTER (WHERE status = 'FAILED') AS failed_jobs,
       round(count(*) FILTER (WHERE status = 'COMPLETED')::numeric / count(*) * 100, 2) AS success_rate,
       avg(duration_ms) FILTER (WHERE status = 'COMPLETED')::float AS average_duration_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE status = 'COMPLETED')
           AS p95_duration_ms,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY duration_ms) FILTER (WHERE status = 'COMPLETED')
           AS p99_duration_ms,
       count(*) FILTER (WHERE is_dead) AS dlq_count
FROM made
GROUP BY job_type
ORDER BY job_type
