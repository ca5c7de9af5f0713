-- a row is an obligation whose status may have to follow its date
SELECT o.id
FROM obligations AS o
WHERE o.status <> 'NOT_APPLICABLE'
  AND o.deleted_at IS NULL
  AND o.deadline_date IS NOT NULL
  AND CAST(o.status AS text) IS DISTINCT FROM CASE
      WHEN o.deadline_date < CAST(:today AS date) THEN 'OVERDUE'
      WHEN o.status = 'IN_PROGRESS' THEN 'IN_PROGRESS'
      WHEN o.deadline_date <= CAST(:today AS date) + 7 THEN 'DUE_SOON'
      ELSE 'PENDING'
  END
  AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
ORDER BY o.id
