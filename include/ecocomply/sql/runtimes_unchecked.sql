-- a row is an approved run of a generator that nobody has held against the limits yet, a generator's runs together
SELECT m.generator_id || '/' || m.id AS id, m.id AS run_id
FROM runtime_monitoring AS m
WHERE m.validation_status = 'APPROVED'
  AND m.exceedance_checked_at IS NULL
  AND m.run_date <= CAST(:today AS date)
  AND (CAST(:company_id AS uuid) IS NULL OR m.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR m.generator_id = CAST(:generator_id AS uuid))
  AND (
      CAST(:after AS text) IS NULL
      OR (m.generator_id, m.id) > (
          CAST(split_part(CAST(:after AS text), '/', 1) AS uuid), CAST(split_part(CAST(:after AS text), '/', 2) AS uuid)
      )
  )
ORDER BY m.generator_id, m.id
LIMIT :limit
