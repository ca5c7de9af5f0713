-- one row: who asked for a job, and is still there; who only the payload or its document names is of the company
SELECT u.id
FROM background_jobs AS q
LEFT JOIN documents AS d ON d.id = CASE
    WHEN q.payload ->> 'document_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
        THEN CAST(q.payload ->> 'document_id' AS uuid)
END
CROSS JOIN LATERAL (
    SELECT coalesce(q.created_by::text, q.payload ->> 'requested_by', q.payload ->> 'user_id', d.uploaded_by::text)
) AS asked (by)
JOIN users AS u ON u.id = CASE
    WHEN asked.by ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' THEN CAST(asked.by AS uuid)
END
WHERE q.id = :job_id
  AND u.is_active
  AND u.deleted_at IS NULL
  AND (u.company_id = :company_id OR u.id = q.created_by)
