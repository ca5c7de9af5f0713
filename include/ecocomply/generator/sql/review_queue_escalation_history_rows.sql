-- a row is the first escalation of an item that has waited for two days
INSERT INTO review_queue_escalation_history (
    id, review_queue_item_id, escalation_level, escalated_at, hours_pending
)
SELECT md5('escalated' || i.id)::uuid, i.id, 1, i.created_at + interval '48 hours', 48
FROM review_queue_items AS i
WHERE i.created_at < pg_temp.at(pg_temp.today(), 0) - interval '60 hours' AND i.review_status = 'PENDING'
