-- a row is how many active clocks are past their date
SELECT count(*)
FROM compliance_clocks_universal AS c
WHERE c.status = 'ACTIVE'
  AND c.target_date < CAST(:today AS date)
  AND (CAST(:ids AS uuid[]) IS NULL OR c.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
