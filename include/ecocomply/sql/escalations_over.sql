-- a row is an unresolved escalation of what is no longer overdue
SELECT e.id
FROM escalations AS e
LEFT JOIN deadlines AS d ON d.id = e.entity_id AND e.entity_type = 'DEADLINE'
LEFT JOIN obligations AS o ON o.id = coalesce(d.obligation_id, e.entity_id)
WHERE e.resolved_at IS NULL
  -- a day that is made up for leaves newer escalations alone
  AND e.escalated_at <= :as_of
  AND (
      o.deleted_at IS NULL
      AND o.status <> 'NOT_APPLICABLE'
      AND coalesce(d.status::text, o.status::text) = 'OVERDUE'
      AND coalesce(d.due_date, o.deadline_date) < CAST(:today AS date)
  ) IS NOT TRUE
  AND (CAST(:company_id AS uuid) IS NULL OR e.company_id = CAST(:company_id AS uuid))
  AND (CAST(:obligation_category AS text) IS NULL OR o.category = CAST(:obligation_category AS text))
  AND (CAST(:after AS uuid) IS NULL OR e.id > CAST(:after AS uuid))
ORDER BY e.id
LIMIT :limit
