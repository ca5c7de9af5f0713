-- a row is a rule that has fired, or whose next date is another one now
UPDATE recurrence_trigger_rules AS r
SET last_executed_at = CASE WHEN f.fired > 0 THEN greatest(r.last_executed_at, :as_of) ELSE r.last_executed_at END,
    execution_count = r.execution_count + f.fired,
    next_execution_date = CASE WHEN f.moves THEN f.next_execution_date ELSE r.next_execution_date END,
    updated_at = clock_timestamp()
FROM jsonb_to_recordset(CAST(:rules AS jsonb)) AS f (
    rule uuid, fired integer, moves boolean, next_execution_date date
)
WHERE r.id = f.rule
  AND r.id = ANY (CAST(:ids AS uuid[]))
  AND (f.fired > 0 OR (f.moves AND r.next_execution_date IS DISTINCT FROM f.next_execution_date))
