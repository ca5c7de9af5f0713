-- a row is a sample; the last one is up to two weeks old
INSERT INTO lab_results (id, parameter_id, sample_date, recorded_value, unit, is_exceedance, created_at, updated_at)
SELECT pg_temp.make_id('sample', 100 * n + k), p.id, pg_temp.today() - pg_temp.roll('sample', n, 14) - 7 * k,
       round(p.limit_value * share.part, 2), p.unit, share.part > 1, pg_temp.at(pg_temp.today() - 7 * k, 12),
       pg_temp.at(pg_temp.today() - 7 * k, 12)
FROM generate_series(1, 4 * pg_temp.sites()) AS n
JOIN parameters AS p ON p.id = pg_temp.make_id('parameter', n)
CROSS JOIN generate_series(0, 7) AS k
CROSS JOIN LATERAL (SELECT 0.3 + pg_temp.roll('measured', 100 * n + k, 75) / 100.0 AS part) AS share
