-- a row is an obligation that recurs or waits, and why its dates can't be reckoned, if they can't
SELECT o.id, o.company_id,
       CASE
           WHEN o.base_date IS NULL THEN 'it has a frequency, and no base date to reckon from'
           WHEN NOT isfinite(o.base_date) OR o.base_date NOT BETWEEN DATE '1900-01-01' AND DATE '2999-12-31'
               THEN 'its base date is no day between 1900 and 2999'
       END AS unusable
FROM obligations AS o
WHERE o.status <> 'NOT_APPLICABLE'
  AND o.deleted_at IS NULL
  AND o.frequency IS NOT NULL
  AND NOT (o.frequency = 'ONE_TIME' AND o.status = 'COMPLETED')
  AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR o.id > CAST(:after AS uuid))
ORDER BY o.id
LIMIT :limit
