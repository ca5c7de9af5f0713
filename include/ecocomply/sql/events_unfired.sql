-- a row is an event with the rules that listen to it and have not fired by it; none from before a rule or the adoption
SELECT e.id, e.company_id, e.event_type, e.event_data::text AS event_data, e.occurred_at, waiting.rules
FROM recurrence_events AS e
CROSS JOIN LATERAL (
    SELECT array_agg(r.id ORDER BY r.id) AS rules
    FROM recurrence_trigger_rules AS r
    WHERE r.company_id = e.company_id
      AND r.is_active
      AND r.trigger_type <> 'SCHEDULED'
      AND r.trigger_type::text = ANY (CAST(:types AS text[]))
      AND (jsonb_exists(r.rule_config -> 'event_types', e.event_type) OR r.trigger_expression = e.event_type)
      AND r.created_at <= e.occurred_at
      AND NOT EXISTS (
          SELECT FROM recurrence_trigger_executions AS x
          WHERE x.trigger_rule_id = r.id
            AND x.event_id = e.id
            AND NOT (x.execution_result = 'FAILED' AND x.execution_data @> '{"again": true}')
      )
) AS waiting
WHERE waiting.rules IS NOT NULL
  AND e.occurred_at <= :as_of
  AND e.created_at >= (SELECT a.at FROM adoption AS a)
  AND (CAST(:company_id AS uuid) IS NULL OR e.company_id = CAST(:company_id AS uuid))
  AND (CAST(:event_id AS uuid) IS NULL OR e.id = CAST(:event_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR e.id > CAST(:after AS uuid))
ORDER BY e.id
LIMIT :limit
