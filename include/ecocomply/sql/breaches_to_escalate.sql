-- a row is a breach of an SLA and the highest of its levels that is reached, if nobody was told of that or a higher one
SELECT d.id, d.company_id, o.site_id, s.name AS site_name, d.obligation_id, o.summary, o.assigned_to,
       coalesce(d.sla_target_date, d.due_date) AS target_date, reached.level, reached.hours AS threshold_hours,
       floor(extract(epoch FROM CAST(:as_of AS timestamptz) - d.sla_breached_at) / 3600)::integer AS breach_hours
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id
JOIN sites AS s ON s.id = o.site_id
CROSS JOIN LATERAL (
    SELECT l.level, l.hours
    FROM (VALUES (1, 12), (2, 24), (3, 48)) AS l (level, hours)
    WHERE d.sla_breached_at <= CAST(:as_of AS timestamptz) - l.hours * interval '1 hour'
      -- a level that was reached before the adoption is history, the next one is not
      AND d.sla_breached_at >= (SELECT a.at FROM adoption AS a) - l.hours * interval '1 hour'
    ORDER BY l.level DESC
    LIMIT 1
) AS reached
WHERE d.sla_breached_at <= CAST(:as_of AS timestamptz) - interval '12 hours'
  -- what began before is a slip of the pen, -infinity among it, and has been refused
  AND d.sla_breached_at >= TIMESTAMPTZ '1900-01-01 00:00:00+00'
  AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  -- a target that was moved is none that was missed, until it has passed and is found missed anew; without a target
  -- the application's word counts
  AND (
      d.sla_target_date IS NULL
      OR (
          d.sla_target_date < CAST(:today AS date)
          AND CAST(d.sla_breached_at AT TIME ZONE 'UTC' AS date) > d.sla_target_date
      )
  )
  AND o.status <> 'NOT_APPLICABLE'
  AND o.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  -- another target date is another breach
  AND NOT EXISTS (
      SELECT FROM notifications AS n
      WHERE n.entity_id = d.id
        AND n.notification_type = 'SLA_BREACH_ESCALATION'
        AND n.escalation_level >= reached.level
        AND n.metadata ->> 'target_date' = coalesce(d.sla_target_date, d.due_date)::text
  )
  AND (CAST(:ids AS uuid[]) IS NULL OR d.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
