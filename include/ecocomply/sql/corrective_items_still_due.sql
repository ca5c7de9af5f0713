-- a row is one of these items, if it is still open and due by then, with what its people are told
SELECT i.id, i.company_id, a.site_id, i.corrective_action_id, i.item_title, i.due_date, i.assigned_to,
       a.corrective_action_name
FROM corrective_action_items AS i
JOIN corrective_actions AS a ON a.id = i.corrective_action_id
WHERE i.id = ANY (CAST(:ids AS uuid[]))
  AND i.status IN ('PENDING', 'IN_PROGRESS')
  AND i.due_date <= CAST(:until AS date)
  AND i.due_date >= (SELECT a.day FROM adoption AS a)
  AND a.status NOT IN ('CLOSED', 'CANCELLED')
ORDER BY i.id
