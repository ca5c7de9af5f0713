-- a row is a generated contractor; every fifty sessions share one
INSERT INTO contractors (id, name, email, cnrpp_id, status, cnrpp_expiry_date, last_cnrpp_alert_sent_at, created_at)
SELECT md5('clearpath contractor ' || n)::uuid,
       'Contractor ' || n,
       'contractor-' || n || '@example.test',
       'CRT-' || lpad(n::text, 7, '0'),
       CASE WHEN days < -3 THEN 'inactive' ELSE 'active' END,
       CAST(:today AS date) + days,
       -- most that are within the window were told before, some of them this month
       CASE
           WHEN days BETWEEN -3 AND 45 AND n % 3 > 0
           THEN CAST(:now AS timestamptz) - make_interval(days => (n % 45)::integer)
       END,
       CAST(:now AS timestamptz) - interval '1200 days'
FROM (
    SELECT n, ((n * 389) % 1000 - 100)::integer AS days
    FROM generate_series(0, CAST(:sessions AS integer) / 50) AS n
) AS planned
ON CONFLICT DO NOTHING
