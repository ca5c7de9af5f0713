-- a row is a running clock of the next batch
SELECT id, target_date
FROM compliance_clocks_universal
WHERE status IN ('ACTIVE', 'OVERDUE')
  AND (CAST(:after AS uuid) IS NULL OR id > CAST(:after AS uuid))
ORDER BY id
LIMIT :limit
