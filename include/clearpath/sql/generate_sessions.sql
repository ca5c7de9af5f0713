-- a row is a generated session; its number decides its story, in the proportions of a business of three years
WITH planned AS (
    SELECT n, n % 1000 * 919 % 1000 AS story, n % 997 * 44 % 997 AS spread
    FROM generate_series(1, CAST(:sessions AS integer)) AS n
),
dated AS (
    SELECT n, story, spread,
           CASE
               WHEN story < 700 THEN 100 + spread % 860
               WHEN story < 780 THEN spread % 80
               WHEN story < 800 THEN 80 + spread % 11
               WHEN story < 820 THEN 92 + spread % 20
               WHEN story < 830 THEN 95 + spread % 40
               WHEN story < 840 THEN NULL
               WHEN story < 880 THEN spread % 400
               WHEN story < 970 THEN 190 + spread % 500
               -- past the grace period, on its last day, and past it with a result
               WHEN story < 980 THEN 182 + spread % 5
               WHEN story < 985 THEN 181
               WHEN story < 990 THEN 185 + spread % 10
               -- has a mail that is due now
               ELSE (ARRAY[30, 60, 80, 88])[1 + n % 4]
           END::integer AS age
    FROM planned
)
INSERT INTO test_sessions (
    id, user_id, contractor_id, status, clearpath_order_id, kit_serial_number, address, activated_at,
    expected_completion_date, expired_at, completed_at, created_at, updated_at
)
SELECT md5('clearpath session ' || n)::uuid,
       md5('clearpath user ' || n / 3)::uuid,
       CASE WHEN n % 4 = 0 THEN md5('clearpath contractor ' || n / 50)::uuid END,
       CASE
           WHEN story < 700 THEN 'complete'
           WHEN story < 780 THEN 'active'
           WHEN story < 800 THEN 'retrieval_due'
           WHEN story < 820 THEN 'mailed'
           WHEN story < 830 THEN 'results_pending'
           WHEN story < 840 THEN 'pending'
           WHEN story < 880 THEN 'cancelled'
           WHEN story < 970 THEN 'expired'
           WHEN story < 985 THEN (ARRAY['active', 'retrieval_due', 'mailed', 'results_pending'])[1 + n % 4]
           WHEN story < 990 THEN 'results_pending'
           ELSE 'active'
       END,
       'GEN-' || lpad(n::text, 8, '0'),
       'KIT-' || lpad(n::text, 8, '0'),
       n || ' Jasper Avenue, Edmonton, AB',
       CAST(:now AS timestamptz)
           - make_interval(days => age, mins => (CASE WHEN story < 990 THEN spread % 600 ELSE n % 14 END)::integer),
       CAST(:today AS date) - age + 91,
       CASE
           WHEN story BETWEEN 880 AND 969 THEN CAST(:now AS timestamptz) - make_interval(days => age - 182)
       END,
       CASE WHEN story < 700 THEN CAST(:now AS timestamptz) - make_interval(days => age - 96) END,
       CAST(:now AS timestamptz) - make_interval(days => coalesce(age, 0) + 6),
       CAST(:now AS timestamptz) - make_interval(days => coalesce(age, 0))
FROM dated
ON CONFLICT DO NOTHING
