-- a row is a rule that fires now and is still active, held until the transaction ends
SELECT r.id, r.next_execution_date
FROM recurrence_trigger_rules AS r
WHERE r.id = ANY (CAST(:ids AS uuid[]))
  AND r.is_active
ORDER BY r.id
FOR NO KEY UPDATE
