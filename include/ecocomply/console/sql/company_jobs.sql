-- a row is a job of a company, or one that failed for it, the latest first
WITH own AS (
    (
        SELECT q.id
        FROM background_jobs AS q
        WHERE q.company_id = :company_id
        ORDER BY q.created_at DESC, q.id DESC
        LIMIT :limit
    )
    UNION
    -- the service's own jobs are no company's, their dead letters are
    (
        SELECT d.job_id
        FROM dead_letter_queue AS d
        WHERE d.company_id = :company_id
        ORDER BY d.created_at DESC, d.id DESC
        LIMIT :limit
    )
)
SELECT q.id, q.job_type, q.status::text AS status, q.created_at, q.started_at, q.completed_at,
       left(q.error_message, 300) AS error, u.email AS asked_by
FROM own
JOIN background_jobs AS q ON q.id = own.id
LEFT JOIN users AS u ON u.id = q.created_by
ORDER BY q.created_at DESC, q.id DESC
LIMIT :limit
