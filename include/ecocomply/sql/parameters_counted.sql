-- a row is how many parameters are sampled
SELECT count(*)
FROM parameters AS p
JOIN documents AS d ON d.id = p.document_id
WHERE p.is_active
  AND d.status = 'ACTIVE'
  AND d.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR p.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR p.site_id = CAST(:site_id AS uuid))
  AND (CAST(:parameter_id AS uuid) IS NULL OR p.id = CAST(:parameter_id AS uuid))
