-- a row is one of a site's two wastes
INSERT INTO waste_streams (id, site_id, name, ewc_code)
SELECT pg_temp.make_id('stream', 2 * s + k), pg_temp.make_id('site', s),
       CASE WHEN k = 0 THEN 'Waste oil' ELSE 'Mixed paper' END, CASE WHEN k = 0 THEN '130205*' ELSE '200101' END
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN generate_series(0, 1) AS k
