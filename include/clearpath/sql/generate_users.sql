-- a row is a generated customer; every three sessions share one
INSERT INTO users (id, email, full_name, created_at)
SELECT md5('clearpath user ' || n)::uuid,
       'customer-' || n || '@example.test',
       CASE n % 20
           WHEN 7 THEN '<a href="https://evil.test">Reset</a> & Co'
           WHEN 11 THEN 'Íñigo Ñuñez ' || n
           ELSE 'Customer ' || n
       END,
       CAST(:now AS timestamptz) - interval '1200 days'
FROM generate_series(0, CAST(:sessions AS integer) / 3) AS n
ON CONFLICT DO NOTHING
