-- a row is how a job stands, as its changes are notified
SELECT jsonb_build_object(
    'job_id', q.id,
    'status', q.status,
    'progress', CASE WHEN q.progress IS NOT NULL THEN
        jsonb_build_object('current', q.progress -> 'current', 'total', q.progress -> 'total')
    END,
    'updated_at', q.updated_at
)::text AS said
FROM background_jobs AS q
WHERE q.id = ANY (CAST(:ids AS uuid[]))
ORDER BY q.id
