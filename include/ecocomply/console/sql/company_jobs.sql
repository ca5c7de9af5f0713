-- a row is a job of a company, the latest first
SELECT q.id, q.job_type, q.status::text AS status, q.created_at, q.started_at, q.completed_at,
       left(q.error_message, 300) AS error, u.email AS asked_by
FROM background_jobs AS q
LEFT JOIN users AS u ON u.id = q.created_by
WHERE q.company_id = :company_id
ORDER BY q.created_at DESC, q.id DESC
LIMIT :limit
