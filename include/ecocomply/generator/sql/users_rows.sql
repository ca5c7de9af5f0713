-- a row is one of a company's nine people; the last has left
INSERT INTO users (id, company_id, email, full_name, phone, is_active, created_at, updated_at)
SELECT pg_temp.make_id('user', n), pg_temp.make_id('company', (n + 8) / 9),
       lower(person.first) || '.' || n || '@company-' || (n + 8) / 9 || '.example',
       person.first || ' ' || person.last,
       CASE WHEN pg_temp.roll('phone', n, 3) > 0 THEN '+447700900' || lpad((n % 1000)::text, 3, '0') END,
       n % 9 <> 0,
       pg_temp.at(pg_temp.today() - 1300, 9), pg_temp.at(pg_temp.today() - 1300, 9)
FROM generate_series(1, 9 * pg_temp.companies()) AS n
CROSS JOIN LATERAL (
    SELECT pg_temp.pick('first name', n, ARRAY['Aisha', 'Ben', 'Carys', 'Dipak', 'Eilidh', 'Fergus', 'Grace', 'Hana',
               'Imran', 'Joanne', 'Kwame', 'Lucy']) AS first,
           pg_temp.pick('last name', n, ARRAY['Ahmed', 'Bell', 'Cooper', 'Davies', 'Evans', 'Fraser', 'Green',
               'Hughes', 'Iqbal', 'Jones', 'Khan', 'Lewis']) AS last
) AS person
