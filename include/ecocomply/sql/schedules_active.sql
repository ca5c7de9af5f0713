-- a row is an active schedule
SELECT s.id
FROM schedules AS s
JOIN obligations AS o ON o.id = s.obligation_id
WHERE s.status = 'ACTIVE'
  AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
ORDER BY s.id
