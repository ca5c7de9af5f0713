-- a row is an open gap that is resolved: its evidence suffices, or nothing has to be proved any more
WITH resolved AS MATERIALIZED (
    SELECT g.id
    FROM evidence_gaps AS g
    JOIN deadlines AS d ON d.id = g.deadline_id
    JOIN obligations AS o ON o.id = g.obligation_id
    WHERE g.id = ANY (CAST(:ids AS uuid[]))
      AND g.resolved_at IS NULL
      -- a run of an earlier day knows nothing of what was found after it
      AND g.detected_at <= CAST(:as_of AS timestamptz)
      AND (
          d.status IN ('COMPLETED', 'NOT_APPLICABLE')
          OR o.status IN ('COMPLETED', 'NOT_APPLICABLE')
          OR o.deleted_at IS NOT NULL
          OR NOT o.evidence_required
          OR EXISTS (
              SELECT FROM obligation_evidence_links AS l
              JOIN evidence_items AS e ON e.id = l.evidence_id
              WHERE l.obligation_id = o.id
                AND l.unlinked_at IS NULL
                AND e.deleted_at IS NULL
                AND NOT e.is_archived
                AND (e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date))
                AND e.validation_status = 'APPROVED'
          )
      )
    ORDER BY g.id
    FOR NO KEY UPDATE OF g
)
UPDATE evidence_gaps AS g
SET resolved_at = CAST(:as_of AS timestamptz),
    updated_at = clock_timestamp()
FROM resolved AS r
WHERE g.id = r.id
