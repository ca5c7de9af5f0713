-- a row is an open gap that is of another kind now, graver, or of another due date
WITH grave (severity, weight) AS (
    VALUES ('LOW', 1), ('MEDIUM', 2), ('HIGH', 3), ('CRITICAL', 4)
),
changing AS MATERIALIZED (
    SELECT g.id, d.due_date, o.summary, o.assigned_to, kind.gap_type, fitting.severity,
           -- for one due date only what is graver counts; another one starts anew
           fitting.weight > present.weight OR moved.yes AS worse,
           -- what had passed at the adoption is told to nobody
           d.due_date >= (SELECT a.day FROM adoption AS a) AS is_news
    FROM evidence_gaps AS g
    JOIN deadlines AS d ON d.id = g.deadline_id
    JOIN obligations AS o ON o.id = g.obligation_id
    JOIN grave AS present ON present.severity = CAST(g.severity AS text)
    CROSS JOIN LATERAL (
        SELECT count(*) AS linked,
               count(*) FILTER (WHERE e.expiry_date IS NULL OR e.expiry_date >= CAST(:today AS date)) AS live
        FROM obligation_evidence_links AS l
        JOIN evidence_items AS e ON e.id = l.evidence_id
        WHERE l.obligation_id = o.id AND l.unlinked_at IS NULL AND e.deleted_at IS NULL AND NOT e.is_archived
    ) AS evidence
    CROSS JOIN LATERAL (
        SELECT CASE
            -- the column's type for the words, which may be an enum
            WHEN false THEN g.gap_type
            WHEN evidence.linked = 0 THEN 'NO_EVIDENCE'
            WHEN evidence.live = 0 THEN 'EXPIRED_EVIDENCE'
            ELSE 'INSUFFICIENT_EVIDENCE'
        END AS gap_type
    ) AS kind
    JOIN grave AS fitting ON fitting.severity = CASE
        -- passed, and not completed
        WHEN d.due_date < CAST(:today AS date) THEN 'CRITICAL'
        WHEN kind.gap_type <> 'NO_EVIDENCE' THEN 'LOW'
        WHEN d.due_date <= CAST(:today AS date) + 7 THEN 'CRITICAL'
        WHEN d.due_date <= CAST(:today AS date) + 14 THEN 'HIGH'
        WHEN d.due_date <= CAST(:today AS date) + 30 THEN 'MEDIUM'
        ELSE 'LOW'
    END
    CROSS JOIN LATERAL (SELECT coalesce(g.due_date <> d.due_date, false) AS yes) AS moved
    WHERE g.id = ANY (CAST(:ids AS uuid[]))
      AND g.resolved_at IS NULL
      AND g.detected_at <= CAST(:as_of AS timestamptz)
      AND (fitting.weight > present.weight OR g.gap_type <> kind.gap_type OR moved.yes)
    ORDER BY g.id
    FOR NO KEY UPDATE OF g
)
UPDATE evidence_gaps AS g
SET gap_type = c.gap_type,
    due_date = c.due_date,
    severity = CASE
        WHEN NOT c.worse THEN g.severity
        WHEN c.severity = 'CRITICAL' THEN 'CRITICAL'
        WHEN c.severity = 'HIGH' THEN 'HIGH'
        WHEN c.severity = 'MEDIUM' THEN 'MEDIUM'
        ELSE 'LOW'
    END,
    updated_at = clock_timestamp()
FROM changing AS c
WHERE g.id = c.id
RETURNING g.id, g.company_id, g.site_id, g.obligation_id, c.due_date, c.summary, c.assigned_to, g.gap_type, g.severity,
          c.worse AND c.is_news AS worse, (SELECT s.name FROM sites AS s WHERE s.id = g.site_id) AS site_name
