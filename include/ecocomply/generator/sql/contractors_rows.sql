-- a row is one of a company's three carriers; the third one's licence has run out
INSERT INTO contractors (id, company_id, name, licence_number, licence_expiry_date, licence_tier)
SELECT pg_temp.make_id('carrier', 3 * c + k), pg_temp.make_id('company', c),
       pg_temp.pick('carrier', 3 * c + k, ARRAY['Tyne', 'Severn', 'Humber', 'Mersey']) || ' Waste Carriers '
           || (ARRAY['A', 'B', 'C'])[k],
       'CBDU' || (100000 + 3 * c + k), pg_temp.today() + CASE WHEN k = 3 THEN -20 ELSE 300 END,
       CASE WHEN k = 1 THEN 'LOWER' ELSE 'UPPER' END
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(1, 3) AS k
