-- a row is the clock of a permit that expires
INSERT INTO compliance_clocks_universal (
    id, site_id, module_id, entity_type, entity_id, clock_type, target_date, days_remaining, criticality, status,
    assigned_to, created_at, updated_at
)
SELECT pg_temp.make_id('clock', n), d.site_id, d.module_id, 'document', d.id, 'PERMIT_EXPIRY', d.expiry_date,
       left_over.days,
       CASE WHEN left_over.days <= 7 THEN 'RED' WHEN left_over.days <= 30 THEN 'AMBER' ELSE 'GREEN' END,
       CASE WHEN left_over.days < 0 THEN 'OVERDUE' ELSE 'ACTIVE' END, d.assigned_to,
       pg_temp.at(pg_temp.today() - 100, 0), pg_temp.at(pg_temp.today() - 1, 0)
FROM generate_series(1, 4 * pg_temp.sites()) AS n
JOIN documents AS d ON d.id = pg_temp.make_id('document', n) AND d.expiry_date IS NOT NULL
CROSS JOIN LATERAL (SELECT d.expiry_date - pg_temp.today() AS days) AS left_over
