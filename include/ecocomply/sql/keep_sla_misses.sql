-- a row is a deadline that is in breach of its SLA from now on, with what people are told of it
WITH due AS (
    SELECT d.id
    FROM deadlines AS d
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.sla_target_date < CAST(:today AS date)
      AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
      AND d.sla_target_date >= (SELECT a.day FROM adoption AS a)
      AND (
          d.sla_breached_at IS NULL
          OR CAST(d.sla_breached_at AT TIME ZONE 'UTC' AS date) <= d.sla_target_date
      )
    ORDER BY d.id
    FOR NO KEY UPDATE
),
kept AS (
    UPDATE deadlines AS d
    SET sla_breached_at = :as_of,
        sla_breach_duration_hours = 0,
        updated_at = clock_timestamp()
    FROM due
    JOIN deadlines AS before ON before.id = due.id
    JOIN obligations AS o ON o.id = before.obligation_id
    WHERE d.id = due.id
      AND o.deleted_at IS NULL
      AND o.status <> 'NOT_APPLICABLE'
    RETURNING d.id, d.obligation_id, d.due_date, d.sla_target_date
)
SELECT k.id, k.obligation_id, k.due_date, k.sla_target_date, k.due_date - CAST(:today AS date) AS days_to_due_date,
       -- the target's own day is still in time
       floor(
           extract(
               epoch FROM CAST(:as_of AS timestamptz) - CAST(k.sla_target_date + 1 AS timestamp) AT TIME ZONE 'UTC'
           ) / 3600
       )::integer AS sla_breach_hours,
       o.company_id, c.name AS company_name, o.site_id, s.name AS site_name, o.summary, o.assigned_to
FROM kept AS k
JOIN obligations AS o ON o.id = k.obligation_id
JOIN sites AS s ON s.id = o.site_id
JOIN companies AS c ON c.id = o.company_id
ORDER BY k.id
