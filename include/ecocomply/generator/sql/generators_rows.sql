-- a row is one of a site's two generators
INSERT INTO generators (
    id, site_id, document_id, generator_identifier, generator_type, capacity_mw, fuel_type, annual_run_hour_limit,
    monthly_run_hour_limit, anniversary_date, created_at, updated_at
)
SELECT pg_temp.make_id('generator', n), pg_temp.make_id('site', (n + 1) / 2),
       pg_temp.make_id('document', 4 * ((n + 1) / 2) - 1),
       'GEN-' || lpad(n::text, 4, '0'), pg_temp.pick('generator', n, ARRAY['SPECIFIED_GENERATOR', 'MCPD_1_5MW']),
       1 + pg_temp.roll('capacity', n, 40) / 10.0, pg_temp.pick('fuel', n, ARRAY['gas oil', 'natural gas']),
       CASE WHEN pg_temp.roll('limit', n, 10) > 0 THEN 500 END, CASE WHEN pg_temp.roll('monthly', n, 2) = 0 THEN 60 END,
       CASE WHEN pg_temp.roll('anniversary', n, 4) > 0 THEN pg_temp.today() - 400 - pg_temp.roll('year', n, 365) END,
       pg_temp.at(pg_temp.today() - 700, 9), pg_temp.at(pg_temp.today() - 1, 9)
FROM generate_series(1, 2 * pg_temp.sites()) AS n
