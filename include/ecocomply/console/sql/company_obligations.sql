-- a row is an open obligation of a company, the earliest due first
SELECT o.id, o.summary, o.status::text AS status, o.deadline_date, o.frequency::text AS frequency,
       o.review_status::text AS review_status, s.name AS site_name
FROM obligations AS o
LEFT JOIN sites AS s ON s.id = o.site_id
WHERE o.company_id = :company_id
  AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  AND o.deleted_at IS NULL
ORDER BY o.deadline_date NULLS LAST, o.id
LIMIT :limit
