-- a row is a running clock of a company, the earliest first
SELECT c.id, c.clock_type, c.entity_type, c.target_date, c.days_remaining, c.criticality::text AS criticality,
       c.status::text AS status, s.name AS site_name
FROM compliance_clocks_universal AS c
LEFT JOIN sites AS s ON s.id = c.site_id
WHERE c.company_id = :company_id
  AND c.status IN ('ACTIVE', 'OVERDUE')
ORDER BY c.target_date, c.id
LIMIT :limit
