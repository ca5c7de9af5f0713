-- a row is a running clock of a band of days whose days left, criticality or status are no longer so
UPDATE compliance_clocks_universal AS c
SET days_remaining = c.target_date - CAST(:today AS date),
    -- binds without a cast: an application may have enum types of its own
    criticality = :criticality,
    status = :status,
    updated_at = clock_timestamp()
WHERE c.status IN ('ACTIVE', 'OVERDUE')
  AND (CAST(:least AS integer) IS NULL OR c.target_date >= CAST(:today AS date) + CAST(:least AS integer))
  AND (CAST(:most AS integer) IS NULL OR c.target_date <= CAST(:today AS date) + CAST(:most AS integer))
  AND (CAST(:ids AS uuid[]) IS NULL OR c.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
  AND (
      c.days_remaining IS DISTINCT FROM c.target_date - CAST(:today AS date)
      OR c.criticality IS DISTINCT FROM :criticality
      OR c.status IS DISTINCT FROM :status
  )
