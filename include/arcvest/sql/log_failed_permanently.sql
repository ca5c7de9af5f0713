-- a row is a job that has failed for good: what the activity log says of it
INSERT INTO activity_log (type, metadata)
SELECT 'job_failed_permanently',
       jsonb_build_object('job_id', q.id, 'job_type', q.job_type, 'attempts', e.attempts, 'error', e.error)
FROM unnest(CAST(:keys AS uuid[]), CAST(:attempts AS integer[]), CAST(:errors AS text[])) AS e (id, attempts, error)
JOIN job_queue AS q ON q.id = e.id
ORDER BY q.id
