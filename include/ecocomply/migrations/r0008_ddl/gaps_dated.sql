-- a row is an open gap, which was judged by the present date of its deadline
UPDATE evidence_gaps AS g
SET due_date = d.due_date
FROM deadlines AS d
WHERE d.id = g.deadline_id
  AND g.resolved_at IS NULL
  AND g.due_date IS NULL
