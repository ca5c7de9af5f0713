-- a row is a running clock of an exceedance whose year or month has ended
SELECT c.id
FROM compliance_clocks_universal AS c
WHERE c.entity_type = 'generator'
  AND c.clock_type IN ('ANNUAL_LIMIT_EXCEEDED', 'MONTHLY_LIMIT_EXCEEDED', 'THRESHOLD_EXCEEDED')
  AND c.status IN ('ACTIVE', 'OVERDUE')
  AND c.metadata ->> 'window_end' < to_char(CAST(:today AS date), 'YYYY-MM-DD')
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR c.entity_id = CAST(:generator_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR c.id > CAST(:after AS uuid))
ORDER BY c.id
LIMIT :limit
