-- a row is a site that gets a score
SELECT s.id
FROM sites AS s
WHERE s.is_active
  AND s.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR s.id = CAST(:site_id AS uuid))
ORDER BY s.id
