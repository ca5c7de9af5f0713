-- a row is a week's hours of every other generator; one in three or four runs too much
INSERT INTO run_hour_records (id, generator_id, recording_date, hours_recorded, created_at, updated_at)
SELECT pg_temp.make_id('hours', 100 * n + k), pg_temp.make_id('generator', n), pg_temp.today() - 7 * k,
       CASE WHEN n % 6 = 1 OR pg_temp.roll('heavy', n, 10) = 0 THEN 14.5 ELSE pg_temp.roll('hours', 100 * n + k, 90) / 10.0 END,
       pg_temp.at(pg_temp.today() - 7 * k, 18), pg_temp.at(pg_temp.today() - 7 * k, 18)
FROM generate_series(1, 2 * pg_temp.sites(), 2) AS n
CROSS JOIN generate_series(1, 52) AS k
