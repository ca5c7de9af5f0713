-- a row is what came of a rule and one of its dates; a failure that is tried again is written over
INSERT INTO recurrence_trigger_executions (
    company_id, trigger_rule_id, event_id, period, schedule_id, deadline_id, execution_date, next_due_date,
    execution_result, execution_data
)
SELECT f.company_id, f.rule, f.event, f.period, s.id, d.id, :as_of, f.due_date, t.execution_result,
       f.data || jsonb_build_object('created_entity_id', coalesce(s.id, d.id))
FROM jsonb_to_recordset(CAST(:firings AS jsonb)) AS f (
    rule uuid, event uuid, period date, company_id uuid, obligation_id uuid, due_date date, target text, result text,
    data jsonb
)
LEFT JOIN schedules AS s ON f.target = 'SCHEDULE' AND f.result = 'SUCCESS' AND s.obligation_id = f.obligation_id
LEFT JOIN deadlines AS d
    ON f.target = 'DEADLINE' AND f.result = 'SUCCESS' AND d.obligation_id = f.obligation_id AND d.due_date = f.due_date
-- an application may have enum types of its own for these words
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::recurrence_trigger_executions, jsonb_build_object('execution_result', f.result)
) AS t
ORDER BY f.rule, f.event, f.period
ON CONFLICT (trigger_rule_id, period) DO UPDATE
SET schedule_id = excluded.schedule_id,
    deadline_id = excluded.deadline_id,
    execution_date = excluded.execution_date,
    next_due_date = excluded.next_due_date,
    execution_result = excluded.execution_result,
    execution_data = excluded.execution_data
WHERE recurrence_trigger_executions.execution_result = 'FAILED'
  AND (recurrence_trigger_executions.execution_result, recurrence_trigger_executions.execution_data)
      IS DISTINCT FROM (excluded.execution_result, excluded.execution_data)
