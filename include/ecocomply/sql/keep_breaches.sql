-- a row is a deadline that is a breach from now on, with what people are told of it
WITH due AS (
    SELECT d.id
    FROM deadlines AS d
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.due_date < CAST(:today AS date)
      AND d.status IN ('PENDING', 'DUE_SOON', 'OVERDUE')
      AND d.due_date >= (SELECT a.day FROM adoption AS a)
      AND (
          NOT d.breach_notification_sent
          OR CAST(d.breach_detected_at AT TIME ZONE 'UTC' AS date) <= d.due_date
          -- marked as seen at the adoption, for a date that has been moved since
          OR (d.past_at_adoption AND d.breach_detected_at IS NULL)
      )
    ORDER BY d.id
    FOR NO KEY UPDATE
),
kept AS (
    UPDATE deadlines AS d
    SET breach_notification_sent = true,
        breach_detected_at = :as_of,
        updated_at = clock_timestamp()
    FROM due
    JOIN deadlines AS before ON before.id = due.id
    JOIN obligations AS o ON o.id = before.obligation_id
    WHERE d.id = due.id
      AND o.deleted_at IS NULL
      AND o.status <> 'NOT_APPLICABLE'
    RETURNING d.id, d.obligation_id, d.due_date
)
SELECT k.id, k.obligation_id, k.due_date, CAST(:today AS date) - k.due_date AS days_overdue,
       floor(
           extract(epoch FROM CAST(:as_of AS timestamptz) - CAST(k.due_date + 1 AS timestamp) AT TIME ZONE 'UTC') / 3600
       )::integer AS hours_to_detection,
       o.company_id, c.name AS company_name, o.site_id, s.name AS site_name, o.summary, o.assigned_to, p.regulator,
       o.evidence_required AND NOT EXISTS (
           SELECT
           FROM obligation_evidence_links AS l
           JOIN evidence_items AS e ON e.id = l.evidence_id
           WHERE l.obligation_id = k.obligation_id
             AND l.unlinked_at IS NULL
             AND e.deleted_at IS NULL
             AND NOT e.is_archived
             AND (e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date))
             AND e.validation_status = 'APPROVED'
       ) AS evidence_missing
FROM kept AS k
JOIN obligations AS o ON o.id = k.obligation_id
JOIN sites AS s ON s.id = o.site_id
JOIN companies AS c ON c.id = o.company_id
LEFT JOIN documents AS p ON p.id = o.document_id
ORDER BY k.id
