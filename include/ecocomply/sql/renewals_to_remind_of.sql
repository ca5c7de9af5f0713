-- a row is a document that expires, with the most urgent mark that it has crossed, if nobody was reminded of that yet
SELECT d.id, d.company_id, d.site_id, s.name AS site_name, c.name AS company_name, d.title, d.document_type,
       d.permit_number, d.expiry_date, d.expiry_date - CAST(:today AS date) AS days_until, crossed.mark
FROM documents AS d
JOIN sites AS s ON s.id = d.site_id
JOIN companies AS c ON c.id = d.company_id
CROSS JOIN LATERAL (
    SELECT min(mark) AS mark
    FROM unnest(CAST(:reminder_days AS integer[])) AS mark
    WHERE d.expiry_date - CAST(:today AS date) <= mark
      -- a mark that was crossed before the adoption is history, the next one is not
      AND d.expiry_date - mark >= (SELECT a.day FROM adoption AS a)
) AS crossed
WHERE d.status = 'ACTIVE'
  AND d.deleted_at IS NULL
  AND d.expiry_date BETWEEN CAST(:today AS date) AND CAST(:today AS date) + CAST(:farthest AS integer)
  AND crossed.mark IS NOT NULL
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR d.site_id = CAST(:site_id AS uuid))
  -- another expiry date is reminded of anew
  AND NOT EXISTS (
      SELECT FROM notifications AS n
      WHERE n.entity_id = d.id
        AND n.notification_type IN ('PERMIT_RENEWAL_REMINDER', 'DEADLINE_ALERT')
        AND n.metadata ->> 'reminder_type' = 'PERMIT_RENEWAL'
        AND n.metadata -> 'reminder_days' <= to_jsonb(crossed.mark)
        AND coalesce(n.metadata ->> 'expiry_date', d.expiry_date::text) = d.expiry_date::text
  )
  AND (CAST(:ids AS uuid[]) IS NULL OR d.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
