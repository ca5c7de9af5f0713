-- a row is an active definition of tasks whose next date has come, or that has none yet; and why it can't be used
SELECT r.id,
       CASE
           -- infinity and years BC among them
           WHEN r.next_due_date < DATE '1900-01-01' THEN 'its next_due_date is no day between 1900 and 2999'
           WHEN r.anchor_date NOT BETWEEN DATE '1900-01-01' AND DATE '2999-12-31'
               THEN 'its anchor_date is no day between 1900 and 2999'
       END AS unusable
FROM recurring_tasks AS r
WHERE r.is_active
  AND (r.next_due_date IS NULL OR r.next_due_date <= CAST(:today AS date))
  AND (CAST(:after AS uuid) IS NULL OR r.id > CAST(:after AS uuid))
ORDER BY r.id
LIMIT :limit
