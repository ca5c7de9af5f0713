-- a row is an escalation of an item with whom it was told to
UPDATE review_queue_escalation_history AS h
SET escalated_to = typed.escalated_to
FROM (
    SELECT d.id, d.level, array_agg(DISTINCT n.user_id ORDER BY n.user_id) AS users
    FROM unnest(CAST(:ids AS uuid[]), CAST(:levels AS integer[])) AS d (id, level)
    JOIN notifications AS n
        ON n.entity_id = d.id
        AND n.notification_type = 'REVIEW_QUEUE_ESCALATION'
        AND n.escalation_level = d.level
    GROUP BY d.id, d.level
) AS told
-- an application may have the list as JSON
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::review_queue_escalation_history, jsonb_build_object('escalated_to', told.users)
) AS typed
WHERE h.review_queue_item_id = told.id
  AND h.escalation_level = told.level
  AND h.escalated_to IS DISTINCT FROM typed.escalated_to
