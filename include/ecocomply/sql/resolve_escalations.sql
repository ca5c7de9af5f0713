-- a row is an escalation that is resolved because what it is of is no longer overdue
WITH over AS (
    SELECT e.id
    FROM escalations AS e
    LEFT JOIN deadlines AS d ON d.id = e.entity_id AND e.entity_type = 'DEADLINE'
    LEFT JOIN obligations AS o ON o.id = coalesce(d.obligation_id, e.entity_id)
    WHERE e.id = ANY (CAST(:ids AS uuid[]))
      AND e.resolved_at IS NULL
      AND e.escalated_at <= :as_of
      AND (
          o.deleted_at IS NULL
          AND o.status <> 'NOT_APPLICABLE'
          AND coalesce(d.status::text, o.status::text) = 'OVERDUE'
          AND coalesce(d.due_date, o.deadline_date) < CAST(:today AS date)
      ) IS NOT TRUE
    ORDER BY e.id
    FOR NO KEY UPDATE OF e
)
UPDATE escalations AS e
SET resolved_at = :as_of,
    updated_at = clock_timestamp()
FROM over
WHERE e.id = over.id
RETURNING e.entity_id
