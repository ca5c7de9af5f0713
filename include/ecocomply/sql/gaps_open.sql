-- a row is an open gap
SELECT g.id
FROM evidence_gaps AS g
WHERE g.resolved_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR g.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR g.id > CAST(:after AS uuid))
ORDER BY g.id
LIMIT :limit
