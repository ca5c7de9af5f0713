-- a row is a run of the generators that have a meter, or somebody who writes it down; one in three runs too much
INSERT INTO runtime_monitoring (
    id, generator_id, run_date, runtime_hours, run_duration, reason_code, data_source, validation_status, created_at,
    updated_at
)
SELECT pg_temp.make_id('run', 100 * n + k), pg_temp.make_id('generator', n), pg_temp.today() - 3 * k,
       run.hours, 60 * run.hours, pg_temp.pick('reason', 100 * n + k, ARRAY['TEST', 'GRID_OUTAGE', 'MAINTENANCE']),
       CASE WHEN run.by_hand THEN 'MANUAL' ELSE 'AUTOMATED' END,
       CASE WHEN run.by_hand AND k < 3 THEN 'PENDING' ELSE 'APPROVED' END,
       pg_temp.at(pg_temp.today() - 3 * k, 19), pg_temp.at(pg_temp.today() - 3 * k, 19)
FROM generate_series(2, 2 * pg_temp.sites(), 2) AS n
CROSS JOIN generate_series(1, 40) AS k
CROSS JOIN LATERAL (
    SELECT pg_temp.roll('run', 100 * n + k, 60) / 10.0 + CASE WHEN n % 6 = 2 THEN 10 ELSE 0 END AS hours,
           pg_temp.roll('by hand', 100 * n + k, 3) = 0 AS by_hand
) AS run
