-- a row is a deadline whose breach of its SLA goes on, and began on a day that nobody can count from
SELECT d.id
FROM deadlines AS d
WHERE d.sla_breached_at < TIMESTAMPTZ '1900-01-01 00:00:00+00'
  AND d.status <> 'COMPLETED'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
