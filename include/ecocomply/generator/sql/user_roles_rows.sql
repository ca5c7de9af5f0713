-- a row is a person's role; a consultancy's staff are consultants as well
INSERT INTO user_roles (id, user_id, role)
SELECT pg_temp.make_id('role', n), pg_temp.make_id('user', n),
       (ARRAY['STAFF', 'OWNER', 'ADMIN', 'MANAGER', 'MANAGER', 'TEAM_LEAD', 'COMPLIANCE_OFFICER', 'STAFF', 'STAFF'])
           [1 + n % 9]
FROM generate_series(1, 9 * pg_temp.companies()) AS n
UNION ALL
SELECT pg_temp.make_id('consultant role', n), pg_temp.make_id('user', n), 'CONSULTANT'
FROM generate_series(1, 4) AS n
WHERE pg_temp.companies() > 1
