-- a row is the first level of a deadline that is overdue for ten days or more
INSERT INTO escalations (
    id, company_id, site_id, obligation_id, entity_type, entity_id, escalation_level, escalated_at, escalated_to,
    escalation_reason
)
SELECT md5('escalation' || d.id)::uuid, d.company_id, d.site_id, d.obligation_id, 'DEADLINE', d.id, 1,
       pg_temp.at(d.due_date + 8, 0), ARRAY[]::uuid[], '8 days overdue'
FROM deadlines AS d
WHERE d.status = 'OVERDUE' AND d.due_date <= pg_temp.today() - 10
