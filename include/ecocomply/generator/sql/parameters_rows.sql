-- a row is one of the four things that a site's consent limits
INSERT INTO parameters (
    id, site_id, document_id, parameter_type, limit_value, unit, sampling_frequency, sampling_weekday, created_at,
    updated_at
)
SELECT pg_temp.make_id('parameter', n), pg_temp.make_id('site', (n + 3) / 4),
       pg_temp.make_id('document', 4 * ((n + 3) / 4) - 2),
       (ARRAY['BOD', 'COD', 'PH', 'AMMONIA'])[1 + n % 4], (ARRAY[300, 600, 9, 50])[1 + n % 4],
       (ARRAY['mg/l', 'mg/l', 'pH', 'mg/l'])[1 + n % 4],
       pg_temp.pick('sampled', n, ARRAY['DAILY', 'WEEKLY', 'WEEKLY', 'MONTHLY', 'QUARTERLY', 'ANNUAL']),
       1 + pg_temp.roll('weekday', n, 5), pg_temp.at(pg_temp.today() - 400, 9), pg_temp.at(pg_temp.today() - 400, 9)
FROM generate_series(1, 4 * pg_temp.sites()) AS n
