-- a row is a client of a consultant; every seventh has ended
INSERT INTO consultant_client_assignments (id, consultant_id, company_id, status)
SELECT pg_temp.make_id('client', c), pg_temp.make_id('user', 1 + c % 4), pg_temp.make_id('company', c),
       CASE WHEN c % 7 = 0 THEN 'INACTIVE' ELSE 'ACTIVE' END
FROM generate_series(2, pg_temp.companies()) AS c
