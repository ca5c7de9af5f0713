-- a row is a rule and an event that it has fired by already
SELECT x.trigger_rule_id, x.event_id
FROM unnest(CAST(:rules AS uuid[]), CAST(:events AS uuid[])) AS f (rule, event)
JOIN recurrence_trigger_executions AS x ON x.trigger_rule_id = f.rule AND x.event_id = f.event
WHERE NOT (x.execution_result = 'FAILED' AND x.execution_data @> '{"again": true}')
