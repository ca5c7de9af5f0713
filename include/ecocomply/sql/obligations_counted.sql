-- a row is how many obligations are scheduled
SELECT count(*)
FROM obligations AS o
WHERE o.status <> 'NOT_APPLICABLE'
  AND o.deleted_at IS NULL
  AND o.frequency IS NOT NULL
  AND NOT (o.frequency = 'ONE_TIME' AND o.status = 'COMPLETED')
  AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
