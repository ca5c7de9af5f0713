-- a row is a session; of :sessions, spread evenly, :overdue are past their grace period without an end
INSERT INTO test_sessions (
    id, user_id, status, clearpath_order_id, kit_serial_number, address, activated_at, expected_completion_date
)
SELECT md5('bench session ' || n)::uuid,
       md5('bench user ' || (1 + n % CAST(:people AS integer)))::uuid,
       CASE
           WHEN n % (CAST(:sessions AS integer) / CAST(:overdue AS integer)) = 0
           THEN (ARRAY['active', 'retrieval_due', 'mailed', 'results_pending'])[1 + (n / 10) % 4]
           ELSE (ARRAY['complete', 'active', 'cancelled', 'expired'])[1 + n % 4]
       END,
       'CPO-' || n,
       'KIT-' || n,
       n || ' Jasper Avenue, Edmonton, AB',
       CAST(:today AS date) - days - 91,
       CAST(:today AS date) - days
FROM (
    SELECT n,
           CASE
               WHEN n % (CAST(:sessions AS integer) / CAST(:overdue AS integer)) = 0 THEN 91 + n % 300
               WHEN n % 4 = 1 THEN n % 90
               ELSE n % 900
           END AS days
    FROM generate_series(1, CAST(:sessions AS integer)) AS n
) AS planned
