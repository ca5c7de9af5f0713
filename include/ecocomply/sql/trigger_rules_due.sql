-- a row is a rule by the calendar whose next date has come, with what its last firing keeps of the series
SELECT r.id, r.company_id, r.rule_name, r.trigger_type::text AS trigger_type,
       r.target_entity_type::text AS target_entity_type, r.rule_config::text AS rule_config,
       r.template_data::text AS template_data, r.next_execution_date, last.day_of_month, last.next_execution_date AS promised,
       (SELECT nullif(a.day, '-infinity') FROM adoption AS a) AS adopted_on
FROM recurrence_trigger_rules AS r
LEFT JOIN LATERAL (
    SELECT x.execution_data ->> 'day_of_month' AS day_of_month,
           x.execution_data ->> 'next_execution_date' AS next_execution_date
    FROM recurrence_trigger_executions AS x
    WHERE x.trigger_rule_id = r.id
      AND x.period < r.next_execution_date
    ORDER BY x.period DESC
    LIMIT 1
) AS last ON true
WHERE r.is_active
  AND r.trigger_type = 'SCHEDULED'
  AND r.next_execution_date <= CAST(:today AS date)
  AND (CAST(:company_id AS uuid) IS NULL OR r.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR r.id > CAST(:after AS uuid))
ORDER BY r.id
LIMIT :limit
