-- a row is the next job of a series, after one that has ended; a series has one open job at a time
INSERT INTO scheduled_jobs (
    type, data, schedule, next_run_at, created_by, series_id, failures_in_row, failing_since, failing_told,
    failing_cause
)
SELECT j.type,
       j.data,
       j.schedule,
       f.next_run_at,
       j.created_by,
       coalesce(j.series_id, j.id),
       CASE WHEN :failed THEN j.failures_in_row + 1 ELSE 0 END,
       CASE WHEN :failed THEN coalesce(j.failing_since, j.next_run_at) END,
       :failed AND j.failing_told,
       CASE WHEN :failed THEN j.failing_cause END
FROM unnest(CAST(:ids AS uuid[]), CAST(:next_runs AS timestamptz[])) AS f (id, next_run_at)
JOIN scheduled_jobs AS j ON j.id = f.id
WHERE NOT EXISTS (
    SELECT
    FROM scheduled_jobs AS o
    WHERE (o.series_id = coalesce(j.series_id, j.id) OR o.id = j.series_id)
      AND o.id <> j.id
      AND o.status IN ('pending', 'processing')
)
ORDER BY f.id
ON CONFLICT DO NOTHING
