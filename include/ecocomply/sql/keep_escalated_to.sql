-- a row is an escalation with whom it was told to
UPDATE escalations AS e
SET escalated_to = told.users
FROM (
    SELECT made.id, array_agg(DISTINCT n.user_id ORDER BY n.user_id) AS users
    FROM escalations AS made
    JOIN notifications AS n
        ON n.entity_id = made.entity_id
        AND n.notification_type = 'ESCALATION_ALERT'
        AND n.escalation_level = made.escalation_level
    WHERE made.id = ANY (CAST(:ids AS uuid[]))
    GROUP BY made.id
) AS told
WHERE e.id = told.id
RETURNING e.id, e.escalated_to
