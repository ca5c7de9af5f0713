-- a row is an approved run of a generator that nobody has held against the limits yet
SELECT m.id
FROM runtime_monitoring AS m
WHERE m.validation_status = 'APPROVED'
  AND m.exceedance_checked_at IS NULL
  AND m.run_date <= CAST(:today AS date)
  AND (CAST(:company_id AS uuid) IS NULL OR m.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR m.generator_id = CAST(:generator_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR m.id > CAST(:after AS uuid))
ORDER BY m.id
LIMIT :limit
