-- a schedule is due next when the first of its open deadlines is
UPDATE schedules AS s
SET next_due_date = due.next_due
FROM (
    SELECT d.schedule_id, min(d.due_date) AS next_due
    FROM deadlines AS d
    WHERE d.status IN ('PENDING', 'DUE_SOON') AND d.schedule_id IS NOT NULL
    GROUP BY d.schedule_id
) AS due
WHERE s.id = due.schedule_id
