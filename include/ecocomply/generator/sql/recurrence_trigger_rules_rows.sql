-- a row is one of a company's three rules, one a type
INSERT INTO recurrence_trigger_rules (
    id, company_id, rule_name, trigger_type, trigger_expression, rule_config, target_entity_type, template_data,
    next_execution_date, created_at, updated_at
)
SELECT pg_temp.make_id('trigger', 3 * c + rule.place), pg_temp.make_id('company', c), rule.name, rule.trigger_type,
       rule.expression, rule.config::jsonb, 'DEADLINE',
       jsonb_build_object('obligation_id', target.id), CASE WHEN rule.place = 0 THEN pg_temp.today() END,
       pg_temp.at(pg_temp.today() - 60, 8), pg_temp.at(pg_temp.today() - 60, 8)
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN (VALUES
    (0, 'Monthly check', 'SCHEDULED', 'MONTHLY_ON_DAY_1', '{"frequency": "MONTHLY", "day_of_month": 1}'),
    (1, 'After approval', 'EVENT_BASED', 'PERMIT_APPROVED', '{"event_types": ["PERMIT_APPROVED"], "delay_days": 30}'),
    (2, 'Too much waste', 'CONDITIONAL', 'waste_volume_threshold_exceeded',
        '{"condition": "waste_volume > threshold", "threshold_value": 1000}')
) AS rule (place, name, trigger_type, expression, config)
LEFT JOIN LATERAL (
    SELECT o.id FROM obligations AS o
    WHERE o.company_id = pg_temp.make_id('company', c) ORDER BY o.id LIMIT 1
) AS target ON true
