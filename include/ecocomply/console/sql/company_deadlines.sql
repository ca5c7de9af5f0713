-- a row is an open deadline of a company, the earliest due first
SELECT d.id, d.due_date, d.status::text AS status, o.summary, s.name AS site_name
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id
LEFT JOIN sites AS s ON s.id = d.site_id
WHERE d.company_id = :company_id
  AND d.status IN ('PENDING', 'DUE_SOON', 'OVERDUE')
ORDER BY d.due_date, d.id
LIMIT :limit
