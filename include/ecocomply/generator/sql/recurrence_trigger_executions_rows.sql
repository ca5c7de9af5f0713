-- a row is what came of a company's first event
INSERT INTO recurrence_trigger_executions (
    id, trigger_rule_id, event_id, execution_date, execution_result, execution_data
)
SELECT pg_temp.make_id('trigger execution', c), pg_temp.make_id('trigger', 3 * c + 1), pg_temp.make_id('event', 2 * c + 1),
       pg_temp.at(pg_temp.today() - 20, 10), 'SKIPPED', '{"reason": "the obligation is not applicable"}'
FROM generate_series(1, pg_temp.companies()) AS c
