-- a row is an active definition of tasks whose next date has come, or that has none yet
SELECT r.id
FROM recurring_tasks AS r
WHERE r.is_active
  AND (r.next_due_date IS NULL OR r.next_due_date <= CAST(:today AS date))
  AND (CAST(:after AS uuid) IS NULL OR r.id > CAST(:after AS uuid))
ORDER BY r.id
LIMIT :limit
