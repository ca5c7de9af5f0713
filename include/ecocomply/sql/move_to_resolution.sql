-- a row is a corrective action that goes on to its resolution, with when the last of its items was completed
WITH ready AS (
    SELECT a.id
    FROM corrective_actions AS a
    WHERE a.id = ANY (CAST(:ids AS uuid[]))
      AND a.lifecycle_phase = 'ACTION'
      AND a.status = 'IN_PROGRESS'
    ORDER BY a.id
    FOR NO KEY UPDATE
),
done AS (
    SELECT r.id,
           coalesce(
               to_char(
                   max(coalesce(i.completed_at, i.updated_at)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
               ),
               -- infinity has no such form
               max(coalesce(i.completed_at, i.updated_at))::text
           ) AS done_at
    FROM ready AS r
    JOIN corrective_action_items AS i ON i.corrective_action_id = r.id
    WHERE i.status <> 'CANCELLED'
    GROUP BY r.id
    HAVING bool_and(i.status = 'COMPLETED' AND (i.completed_at IS NULL OR i.completed_at <= :as_of))
)
UPDATE corrective_actions AS a
SET lifecycle_phase = 'RESOLUTION',
    updated_at = clock_timestamp()
FROM done
WHERE a.id = done.id
RETURNING a.id, a.company_id, a.site_id, a.corrective_action_name, a.created_by, done.done_at
