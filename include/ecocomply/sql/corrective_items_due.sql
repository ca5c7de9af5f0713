-- a row is an open item of a corrective action that its people are to hear of today
SELECT i.id
FROM corrective_action_items AS i
JOIN corrective_actions AS a ON a.id = i.corrective_action_id
WHERE i.status IN ('PENDING', 'IN_PROGRESS')
  AND i.due_date <= CAST(:until AS date)
  AND i.due_date >= (SELECT a.day FROM adoption AS a)
  AND a.status NOT IN ('CLOSED', 'CANCELLED')
  AND (CAST(:company_id AS uuid) IS NULL OR i.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR i.id > CAST(:after AS uuid))
ORDER BY i.id
LIMIT :limit
