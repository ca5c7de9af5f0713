-- a row is an item of evidence that expires on a day, with who is assigned to the obligations that it is linked to
SELECT e.id, e.company_id, e.site_id, e.file_name, e.expiry_date, e.uploaded_by, s.name AS site_name,
       c.name AS company_name, linked.assignees
FROM evidence_items AS e
JOIN companies AS c ON c.id = e.company_id
LEFT JOIN sites AS s ON s.id = e.site_id
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT o.assigned_to ORDER BY o.assigned_to), '{}') AS assignees
    FROM obligation_evidence_links AS l
    JOIN obligations AS o ON o.id = l.obligation_id
    WHERE l.evidence_id = e.id
      AND l.unlinked_at IS NULL
      AND o.deleted_at IS NULL
      AND o.assigned_to IS NOT NULL
) AS linked
WHERE e.expiry_date = CAST(:day AS date)
  AND e.deleted_at IS NULL
  AND NOT e.is_archived
  -- after a more urgent mark of the same date a milder one is no news
  AND NOT EXISTS (
      SELECT
      FROM notifications AS n
      CROSS JOIN unnest(CAST(:nearer AS integer[])) AS told (mark)
      WHERE n.entity_id = e.id
        AND starts_with(
            n.dedupe_key,
            concat_ws('/', 'evidence_expiring', 'evidence', e.id, to_char(e.expiry_date, 'YYYY-MM-DD'), told.mark, '')
        )
  )
  AND (CAST(:after AS uuid) IS NULL OR e.id > CAST(:after AS uuid))
ORDER BY e.id
LIMIT :limit
