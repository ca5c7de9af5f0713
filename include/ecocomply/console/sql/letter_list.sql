-- a row is a dead letter that the filter leaves, the latest first, with its job's state now
SELECT
    q.id,
    q.job_id,
    q.company_id,
    c.name AS company_name,
    left(q.error_message, 300) AS error,
    q.retry_count,
    q.created_at,
    q.resolved_at,
    q.resolution::text AS resolution,
    q.resolved_by_airflow_user,
    left(q.resolution_notes, 300) AS notes,
    j.job_type,
    j.status::text AS job_status,
    j.scheduled_for
FROM dead_letter_queue AS q
JOIN background_jobs AS j ON j.id = q.job_id
LEFT JOIN companies AS c ON c.id = q.company_id
WHERE {letters_match}
    AND (
        CAST(:after_at AS timestamptz) IS NULL
        OR (q.created_at, q.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
    )
ORDER BY q.created_at DESC, q.id DESC
LIMIT :limit
