-- a row is a user of the one company, with a mail address
WITH company AS (
    INSERT INTO companies (id, name)
    VALUES (CAST('00000000-0000-0000-0000-000000000001' AS uuid), 'Bench')
    RETURNING id
),
site AS (
    INSERT INTO sites (id, company_id, name)
    SELECT CAST('00000000-0000-0000-0000-000000000002' AS uuid), id, 'Leeds'
    FROM company
)
INSERT INTO users (id, company_id, email, full_name)
SELECT CAST(lpad(to_hex(100000 + n), 32, '0') AS uuid), c.id, 'user-' || n || '@bench.example', 'User ' || n
FROM company AS c
CROSS JOIN generate_series(0, CAST(:people AS integer) - 1) AS n
