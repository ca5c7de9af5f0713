-- a row is a breakdown
INSERT INTO generator_incidents (id, generator_id, incident_date, description)
SELECT pg_temp.make_id('incident', n), pg_temp.make_id('generator', n),
       pg_temp.today() - pg_temp.roll('incident', n, 360), 'Turbocharger failed, and the unit was stopped and repaired'
FROM generate_series(1, 2 * pg_temp.sites(), 3) AS n
