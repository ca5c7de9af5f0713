-- a row is a customer; :people of them
INSERT INTO users (id, email, full_name)
SELECT md5('bench user ' || n)::uuid, 'customer-' || n || '@example.test', 'Customer ' || n
FROM generate_series(1, CAST(:people AS integer)) AS n
