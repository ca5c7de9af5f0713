-- a row is a company, by name
SELECT c.id, c.name, c.is_active, c.deleted_at, s.sites, o.overdue
FROM companies AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS sites FROM sites AS s WHERE s.company_id = c.id AND s.deleted_at IS NULL
) AS s
CROSS JOIN LATERAL (
    SELECT count(*) AS overdue FROM deadlines AS d WHERE d.company_id = c.id AND d.status = 'OVERDUE'
) AS o
WHERE (CAST(:company_ids AS uuid[]) IS NULL OR c.id = ANY (CAST(:company_ids AS uuid[])))
  AND (
      CAST(:after_name AS text) IS NULL
      OR (c.name, c.id) > (CAST(:after_name AS text), CAST(:after_id AS uuid))
  )
ORDER BY c.name, c.id
LIMIT :limit
