-- a row is a test of the fuel that a generator burns
INSERT INTO sulphur_content_reports (
    id, generator_id, test_date, fuel_type, batch_reference, sulphur_content_percentage, sulphur_content_mg_per_kg,
    compliance_status
)
SELECT pg_temp.make_id('sulphur', n), g.id, pg_temp.today() - 90 - pg_temp.roll('sulphur', n, 200), g.fuel_type,
       'B' || n, 0.001, 10, 'PASS'
FROM generate_series(1, 2 * pg_temp.sites()) AS n
JOIN generators AS g ON g.id = pg_temp.make_id('generator', n)
