-- a row is a deadline whose breach of its SLA goes on
SELECT d.id
FROM deadlines AS d
WHERE d.sla_breached_at <= :as_of
  AND d.status <> 'COMPLETED'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
ORDER BY d.id
