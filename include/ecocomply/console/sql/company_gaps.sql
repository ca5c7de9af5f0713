-- a row is an open gap in a company's evidence, the gravest first
SELECT g.id, g.gap_type::text AS gap_type, g.severity::text AS severity, g.detected_at, d.due_date, o.summary,
       s.name AS site_name
FROM evidence_gaps AS g
JOIN deadlines AS d ON d.id = g.deadline_id
JOIN obligations AS o ON o.id = g.obligation_id
LEFT JOIN sites AS s ON s.id = g.site_id
WHERE g.company_id = :company_id
  AND g.resolved_at IS NULL
ORDER BY array_position(ARRAY['CRITICAL', 'HIGH', 'MEDIUM', 'LOW'], g.severity::text), d.due_date, g.id
LIMIT :limit
