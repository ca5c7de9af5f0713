-- a row is a month's fuel of a generator
INSERT INTO fuel_usage_logs (
    id, generator_id, log_date, fuel_type, quantity, unit, sulphur_content_percentage, sulphur_content_mg_per_kg
)
SELECT pg_temp.make_id('fuel', 100 * n + k), g.id, (pg_temp.today() - make_interval(months => k))::date, g.fuel_type,
       200 + pg_temp.roll('burnt', 100 * n + k, 900), 'LITRES', 0.001, 10
FROM generate_series(1, 2 * pg_temp.sites()) AS n
JOIN generators AS g ON g.id = pg_temp.make_id('generator', n)
CROSS JOIN generate_series(1, 12) AS k
