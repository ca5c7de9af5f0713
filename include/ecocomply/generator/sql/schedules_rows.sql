-- a row is the schedule of an obligation that recurs
INSERT INTO schedules (id, obligation_id, frequency, base_date, status, created_at, updated_at)
SELECT md5('schedule' || o.id)::uuid, o.id, o.frequency, o.base_date, 'ACTIVE', o.created_at, o.created_at
FROM obligations AS o
JOIN generate_series(1, pg_temp.obligations()) AS n ON o.id = pg_temp.make_id('obligation', n)
