-- a row is the renewal of a permit that expires in 60 days, or a variation that the regulator looks at
INSERT INTO permit_workflows (
    id, document_id, workflow_type, status, expiry_date, submitted_date, regulator_response_deadline, workflow_notes,
    created_at, updated_at
)
SELECT pg_temp.make_id('renewal', n), d.id, 'RENEWAL', 'DRAFT', d.expiry_date, NULL::date, d.expiry_date - 30,
       'Renewal workflow', pg_temp.at(pg_temp.today() - 30, 1), pg_temp.at(pg_temp.today() - 30, 1)
FROM generate_series(1, 4 * pg_temp.sites()) AS n
JOIN documents AS d ON d.id = pg_temp.make_id('document', n)
WHERE d.status = 'ACTIVE' AND d.expiry_date BETWEEN pg_temp.today() AND pg_temp.today() + 60
UNION ALL
SELECT pg_temp.make_id('variation', c), pg_temp.make_id('document', 12 * c - 11), 'VARIATION', 'UNDER_REVIEW', NULL,
       pg_temp.today() - 80, pg_temp.today() + 5 - pg_temp.roll('answer', c, 20), 'Another emission point',
       pg_temp.at(pg_temp.today() - 90, 1), pg_temp.at(pg_temp.today() - 80, 1)
FROM generate_series(1, pg_temp.companies()) AS c
