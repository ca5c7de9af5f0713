-- a row is an obligation that a person has to look at
INSERT INTO review_queue_items (
    id, site_id, document_id, obligation_id, review_type, priority, original_data, hallucination_risk, created_at,
    updated_at
)
SELECT pg_temp.make_id('review', n), o.site_id, o.document_id, o.id, 'LOW_CONFIDENCE', 1,
       jsonb_build_object('summary', o.summary), pg_temp.roll('risk', n, 5) = 0, since.at, since.at
FROM generate_series(1, pg_temp.obligations()) AS n
JOIN obligations AS o ON o.id = pg_temp.make_id('obligation', n) AND o.review_status = 'PENDING'
CROSS JOIN LATERAL (
    SELECT pg_temp.at(pg_temp.today(), 0) - make_interval(hours => pg_temp.roll('waits', n, 240)) AS at
) AS since
