-- a row is a gap that is opened: a deadline ahead whose evidence does not suffice
WITH found AS MATERIALIZED (
    SELECT d.id AS deadline_id, d.company_id, o.site_id, d.obligation_id, d.due_date, o.summary, o.assigned_to,
           kind.gap_type
    FROM deadlines AS d
    JOIN obligations AS o ON o.id = d.obligation_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS linked,
               count(*) FILTER (WHERE e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date)) AS live,
               count(*) FILTER (
                   WHERE (e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date))
                     AND e.validation_status = 'APPROVED'
               ) AS approved
        FROM obligation_evidence_links AS l
        JOIN evidence_items AS e ON e.id = l.evidence_id
        WHERE l.obligation_id = o.id AND l.unlinked_at IS NULL AND e.deleted_at IS NULL AND NOT e.is_archived
    ) AS evidence
    CROSS JOIN LATERAL (
        SELECT CASE
            -- the column's type for the words, which may be an enum
            WHEN false THEN (NULL::evidence_gaps).gap_type
            WHEN evidence.linked = 0 THEN 'NO_EVIDENCE'
            WHEN evidence.live = 0 THEN 'EXPIRED_EVIDENCE'
            ELSE 'INSUFFICIENT_EVIDENCE'
        END AS gap_type
    ) AS kind
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.due_date >= CAST(:today AS date)
      AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
      AND o.evidence_required
      AND o.deleted_at IS NULL
      AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
      AND evidence.approved = 0
),
opened AS (
    INSERT INTO evidence_gaps (company_id, site_id, obligation_id, deadline_id, due_date, gap_type, severity, detected_at)
    SELECT f.company_id, f.site_id, f.obligation_id, f.deadline_id, f.due_date, f.gap_type,
           CASE
               WHEN false THEN (NULL::evidence_gaps).severity
               WHEN f.gap_type <> 'NO_EVIDENCE' THEN 'LOW'
               WHEN f.due_date <= CAST(:today AS date) + 7 THEN 'CRITICAL'
               WHEN f.due_date <= CAST(:today AS date) + 14 THEN 'HIGH'
               WHEN f.due_date <= CAST(:today AS date) + 30 THEN 'MEDIUM'
               ELSE 'LOW'
           END,
           CAST(:as_of AS timestamptz)
    FROM found AS f
    ORDER BY f.deadline_id
    ON CONFLICT (deadline_id) WHERE resolved_at IS NULL DO NOTHING
    RETURNING id, deadline_id, severity
)
SELECT g.id, f.company_id, f.site_id, f.obligation_id, f.due_date, f.summary, f.assigned_to, f.gap_type, g.severity,
       s.name AS site_name
FROM opened AS g
JOIN found AS f ON f.deadline_id = g.deadline_id
LEFT JOIN sites AS s ON s.id = f.site_id
ORDER BY g.id
