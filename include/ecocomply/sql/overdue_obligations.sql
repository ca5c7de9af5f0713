-- a row is an overdue obligation that has no deadlines, which would be escalated in its stead
SELECT o.id
FROM obligations AS o
JOIN sites AS s ON s.id = o.site_id
JOIN companies AS c ON c.id = o.company_id
WHERE o.status = 'OVERDUE'
  AND o.deadline_date < CAST(:today AS date)
  AND o.deadline_date >= (SELECT a.day FROM adoption AS a)
  AND o.deleted_at IS NULL
  AND s.deleted_at IS NULL
  AND c.deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM deadlines AS d WHERE d.obligation_id = o.id)
  AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
  AND (CAST(:obligation_category AS text) IS NULL OR o.category = CAST(:obligation_category AS text))
  AND (CAST(:after AS uuid) IS NULL OR o.id > CAST(:after AS uuid))
ORDER BY o.id
LIMIT :limit
