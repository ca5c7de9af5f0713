-- a row is an item that waits for review, with the level that it has reached and whether it may be escalated now
SELECT i.id, i.company_id, i.site_id, i.obligation_id, i.review_type, i.is_blocking, i.hallucination_risk, i.created_at,
       coalesce(p.title, o.summary, 'Review item') AS document, reached.level, waited.hours,
       i.escalated_at > CAST(:as_of AS timestamptz) - interval '24 hours' AS too_soon,
       CASE
           WHEN i.created_at < TIMESTAMPTZ '1900-01-01 00:00:00+00' THEN 'its created_at lies before 1900'
       END AS unusable
FROM review_queue_items AS i
LEFT JOIN documents AS p ON p.id = i.document_id
LEFT JOIN obligations AS o ON o.id = i.obligation_id
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN i.created_at < TIMESTAMPTZ '1900-01-01 00:00:00+00' THEN 'Infinity'::numeric
        ELSE extract(epoch FROM CAST(:as_of AS timestamptz) - i.created_at) / 3600
    END AS hours
) AS waited
CROSS JOIN LATERAL (
    SELECT max(l.level) AS level
    FROM (VALUES (1, 48), (2, 96), (3, 168)) AS l (level, hours)
    -- what a model may have made up waits for half as long
    CROSS JOIN LATERAL (SELECT l.hours / CASE WHEN i.hallucination_risk THEN 2 ELSE 1 END AS hours) AS allowed
    WHERE waited.hours >= allowed.hours
      -- a level that was reached before the adoption is history, the next one is not
      AND i.created_at >= (SELECT a.at FROM adoption AS a) - allowed.hours * interval '1 hour'
) AS reached
WHERE i.review_status = 'PENDING'
  AND i.created_at <= CAST(:as_of AS timestamptz) - interval '24 hours'
  AND reached.level > i.escalation_level
  AND (CAST(:company_id AS uuid) IS NULL OR i.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR i.id > CAST(:after AS uuid))
ORDER BY i.id
LIMIT :limit
