-- a row is a deadline whose breach of its SLA has gone on for longer than it says
UPDATE deadlines AS d
SET sla_breach_duration_hours = extract(epoch FROM CAST(:as_of AS timestamptz) - d.sla_breached_at) / 3600,
    updated_at = clock_timestamp()
WHERE d.sla_breached_at <= :as_of
  AND d.sla_breached_at >= TIMESTAMPTZ '1900-01-01 00:00:00+00'
  AND d.status <> 'COMPLETED'
  AND (CAST(:ids AS uuid[]) IS NULL OR d.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  -- an hour that is made up for takes nothing back
  AND (
      d.sla_breach_duration_hours IS NULL
      OR d.sla_breach_duration_hours < extract(epoch FROM CAST(:as_of AS timestamptz) - d.sla_breached_at) / 3600
  )
