-- a row is an obligation that needs evidence, is due within some days, and has none that is live
SELECT o.id, o.company_id, o.site_id, o.summary, o.assigned_to, o.deadline_date, s.name AS site_name,
       o.deadline_date - CAST(:today AS date) AS days_until_due
FROM obligations AS o
JOIN sites AS s ON s.id = o.site_id
WHERE o.status IN ('PENDING', 'IN_PROGRESS', 'DUE_SOON')
  AND o.deleted_at IS NULL
  AND o.evidence_required
  AND o.deadline_date <= CAST(:today AS date) + CAST(:ahead AS integer)
  AND o.deadline_date >= (SELECT a.day FROM adoption AS a)
  AND isfinite(o.deadline_date)
  AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR o.id > CAST(:after AS uuid))
  AND NOT EXISTS (
      SELECT FROM obligation_evidence_links AS l
      JOIN evidence_items AS e ON e.id = l.evidence_id
      WHERE l.obligation_id = o.id
        AND l.unlinked_at IS NULL
        AND e.deleted_at IS NULL
        AND NOT e.is_archived
        AND (e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date))
  )
ORDER BY o.id
LIMIT :limit
