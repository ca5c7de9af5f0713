-- a row is a running clock
SELECT c.id
FROM compliance_clocks_universal AS c
WHERE c.status IN ('ACTIVE', 'OVERDUE')
  AND CAST(:today AS date) IS NOT NULL
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
ORDER BY c.id
