-- a row is a deadline whose SLA target has passed undone, and that is not marked so
SELECT d.id
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id
WHERE d.sla_target_date < CAST(:today AS date)
  AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  AND d.sla_target_date >= (SELECT a.day FROM adoption AS a)
  -- a mark from before this target had passed was of an earlier one
  AND (
      d.sla_breached_at IS NULL
      OR CAST(d.sla_breached_at AT TIME ZONE 'UTC' AS date) <= d.sla_target_date
  )
  AND o.deleted_at IS NULL
  AND o.status <> 'NOT_APPLICABLE'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
