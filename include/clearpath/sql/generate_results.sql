-- a row is the result of a generated session that has one
INSERT INTO results (
    id, test_session_id, value_bq_m3, below_detection, reported_value, reported_unit, source, measured_at, created_at
)
SELECT md5('clearpath result ' || n)::uuid,
       s.id,
       value,
       n % 50 = 0,
       CASE WHEN n % 50 = 0 THEN '<' ELSE '' END || value,
       'Bq/m3',
       CASE WHEN n % 3 = 0 THEN 'self_entry' ELSE 'lab_api' END,
       coalesce(s.completed_at, CAST(:now AS timestamptz)) - interval '4 days',
       coalesce(s.completed_at, CAST(:now AS timestamptz))
FROM (
    SELECT n, n % 1000 * 919 % 1000 AS story, 11 + n % 589 * 476 % 589 AS value
    FROM generate_series(1, CAST(:sessions AS integer)) AS n
) AS planned
JOIN test_sessions AS s ON s.id = md5('clearpath session ' || n)::uuid
WHERE story < 700
   OR story BETWEEN 985 AND 989
ON CONFLICT DO NOTHING
