-- a row is an overdue deadline of an obligation that still applies
SELECT d.id
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id
JOIN sites AS s ON s.id = o.site_id
JOIN companies AS c ON c.id = o.company_id
WHERE d.status = 'OVERDUE'
  AND d.due_date < CAST(:today AS date)
  AND d.due_date >= (SELECT a.day FROM adoption AS a)
  AND o.deleted_at IS NULL
  AND s.deleted_at IS NULL
  AND c.deleted_at IS NULL
  AND o.status <> 'NOT_APPLICABLE'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:obligation_category AS text) IS NULL OR o.category = CAST(:obligation_category AS text))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
