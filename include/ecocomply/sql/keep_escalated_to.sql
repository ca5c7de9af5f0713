-- a row is an escalation with whom it was told to, for the date that it is overdue since
UPDATE escalations AS e
SET escalated_to = typed.escalated_to
FROM (
    SELECT made.id, array_agg(DISTINCT n.user_id ORDER BY n.user_id) AS users
    FROM unnest(CAST(:ids AS uuid[]), CAST(:due_dates AS date[])) AS given (id, due_date)
    JOIN escalations AS made ON made.id = given.id
    JOIN notifications AS n
        ON n.entity_id = made.entity_id
        AND n.notification_type = 'ESCALATION_ALERT'
        AND n.escalation_level = made.escalation_level
        -- the key's fourth part is the date that was told of; an earlier one was told to others, perhaps
        AND split_part(n.dedupe_key, '/', 4) = given.due_date::text
    GROUP BY made.id
) AS told
-- an application may have the list as JSON
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::escalations, jsonb_build_object('escalated_to', told.users)
) AS typed
WHERE e.id = told.id
RETURNING e.id, e.escalated_to
