-- a row is an item that is at a higher level from now on; one that was reviewed or escalated in between stays out
WITH due AS (
    SELECT i.id, d.level, d.hours
    FROM unnest(CAST(:ids AS uuid[]), CAST(:levels AS integer[]), CAST(:hours AS numeric[])) AS d (id, level, hours)
    JOIN review_queue_items AS i ON i.id = d.id
    WHERE i.review_status = 'PENDING'
      AND i.escalation_level < d.level
      AND (i.escalated_at IS NULL OR i.escalated_at <= CAST(:as_of AS timestamptz) - interval '24 hours')
    ORDER BY i.id
    FOR NO KEY UPDATE OF i
),
history AS (
    INSERT INTO review_queue_escalation_history (
        review_queue_item_id, company_id, escalation_level, escalated_at, hours_pending
    )
    SELECT due.id, i.company_id, due.level, :as_of, due.hours
    FROM due
    JOIN review_queue_items AS i ON i.id = due.id
    ORDER BY due.id
    ON CONFLICT (review_queue_item_id, escalation_level) DO NOTHING
)
UPDATE review_queue_items AS i
SET escalation_level = due.level,
    escalated_at = :as_of,
    updated_at = clock_timestamp()
FROM due
WHERE i.id = due.id
RETURNING i.id
