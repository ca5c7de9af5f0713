-- a row is a person at a site: staff and leads at each, a manager at every other
INSERT INTO user_site_assignments (id, user_id, site_id)
SELECT pg_temp.make_id('assignment', 10 * s.n + p), pg_temp.make_id('user', 9 * (pg_temp.company_of_site(s.n) - 1) + p),
       pg_temp.make_id('site', s.n)
FROM generate_series(1, pg_temp.sites()) AS s (n)
CROSS JOIN generate_series(3, 8) AS p
WHERE p > 4 OR (p + s.n) % 2 = 0
