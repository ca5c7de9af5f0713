-- a row is a corrective action in its action phase, all of whose items were completed as of then; cancelled ones aside
SELECT a.id
FROM corrective_actions AS a
CROSS JOIN LATERAL (
    SELECT bool_and(i.status = 'COMPLETED' AND (i.completed_at IS NULL OR i.completed_at <= :as_of)) AS done
    FROM corrective_action_items AS i
    WHERE i.corrective_action_id = a.id
      AND i.status <> 'CANCELLED'
) AS items
WHERE a.lifecycle_phase = 'ACTION'
  AND a.status = 'IN_PROGRESS'
  AND items.done
  AND (CAST(:company_id AS uuid) IS NULL OR a.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR a.id > CAST(:after AS uuid))
ORDER BY a.id
LIMIT :limit
