-- a row is an unresolved escalation of a company, the highest first
SELECT e.id, e.entity_type::text AS entity_type, e.escalation_level, e.escalated_at, e.escalation_reason,
       jsonb_array_length(to_jsonb(e.escalated_to)) AS people, o.summary, s.name AS site_name
FROM escalations AS e
LEFT JOIN obligations AS o ON o.id = e.obligation_id
LEFT JOIN sites AS s ON s.id = e.site_id
WHERE e.company_id = :company_id
  AND e.resolved_at IS NULL
ORDER BY e.escalation_level DESC, e.escalated_at, e.id
LIMIT :limit
