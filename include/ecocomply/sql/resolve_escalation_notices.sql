-- a row is a notification of an escalation that is resolved now
WITH resolved AS (
    SELECT n.id
    FROM notifications AS n
    WHERE n.entity_id = ANY (CAST(:ids AS uuid[]))
      AND n.notification_type = 'ESCALATION_ALERT'
      AND n.is_escalation
      AND n.escalation_state IS DISTINCT FROM 'RESOLVED'
    ORDER BY n.id
    FOR NO KEY UPDATE
)
UPDATE notifications AS n
SET escalation_state = 'RESOLVED',
    updated_at = clock_timestamp()
FROM resolved
WHERE n.id = resolved.id
