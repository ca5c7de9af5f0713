-- an item is at the level of its latest escalation
UPDATE review_queue_items AS i
SET escalation_level = h.escalation_level, escalated_at = h.escalated_at
FROM review_queue_escalation_history AS h
WHERE h.review_queue_item_id = i.id
