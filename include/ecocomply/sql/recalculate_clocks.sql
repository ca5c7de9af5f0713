-- a row is a running clock whose days left, criticality or status are no longer so
UPDATE compliance_clocks_universal AS c
SET days_remaining = c.target_date - CAST(:today AS date),
    criticality = CASE
        WHEN c.target_date - CAST(:today AS date) <= 7 THEN 'RED'
        WHEN c.target_date - CAST(:today AS date) <= 30 THEN 'AMBER'
        ELSE 'GREEN'
    END,
    status = CASE WHEN c.target_date < CAST(:today AS date) THEN 'OVERDUE' ELSE 'ACTIVE' END,
    updated_at = clock_timestamp()
WHERE c.status IN ('ACTIVE', 'OVERDUE')
  AND (CAST(:ids AS uuid[]) IS NULL OR c.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
  -- criticality and status follow from the days, so a clock whose days are right has them right too, unless
  -- an application wrote them by itself
  AND (
      c.days_remaining IS DISTINCT FROM c.target_date - CAST(:today AS date)
      OR c.criticality IS DISTINCT FROM CASE
          WHEN c.target_date - CAST(:today AS date) <= 7 THEN 'RED'
          WHEN c.target_date - CAST(:today AS date) <= 30 THEN 'AMBER'
          ELSE 'GREEN'
      END
      OR c.status IS DISTINCT FROM CASE WHEN c.target_date < CAST(:today AS date) THEN 'OVERDUE' ELSE 'ACTIVE' END
  )
