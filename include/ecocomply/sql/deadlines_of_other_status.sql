-- a row is an open deadline whose status has to follow its date
SELECT d.id
FROM deadlines AS d
WHERE d.status IN ('PENDING', 'DUE_SOON')
  AND (
      d.due_date < CAST(:today AS date)
      OR (d.due_date <= CAST(:today AS date) + 3 AND d.status = 'PENDING')
  )
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR d.site_id = CAST(:site_id AS uuid))
ORDER BY d.id
