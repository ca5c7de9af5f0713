-- a row is something that happened; the second one nobody has looked at
INSERT INTO recurrence_events (id, company_id, event_type, event_data, occurred_at, created_at)
SELECT pg_temp.make_id('event', 2 * c + k), pg_temp.make_id('company', c),
       (ARRAY['PERMIT_APPROVED', 'waste_volume_threshold_exceeded'])[k],
       CASE WHEN k = 2 THEN '{"waste_volume": 1200}'::jsonb ELSE '{}' END,
       pg_temp.at(pg_temp.today() - 10 * (3 - k), 9), pg_temp.at(pg_temp.today() - 10 * (3 - k), 9)
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(1, 2) AS k
