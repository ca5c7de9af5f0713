-- a row is the certificate of a generated session that is complete; the nightly job was last run eight days ago
INSERT INTO certificates (
    id, test_session_id, certificate_number, status, issued_on, valid_until, expired_at, pdf_needs_regeneration,
    pdf_path, current_pdf_path, rendered_at, created_at, updated_at
)
SELECT md5('clearpath certificate ' || n)::uuid,
       session_id,
       'CP-GEN-' || lpad(n::text, 8, '0'),
       CASE WHEN over THEN 'expired' ELSE 'valid' END,
       valid_until - 730,
       valid_until,
       CASE WHEN over THEN completed_at + interval '731 days' END,
       over,
       CASE WHEN n % 50 <> 1 THEN 'certificates/generated-' || n || '.pdf' END,
       CASE WHEN n % 50 <> 1 THEN 'certificates/generated-' || n || '.pdf' END,
       CASE WHEN n % 50 <> 1 THEN completed_at + interval '1 minute' END,
       completed_at,
       completed_at
FROM (
    SELECT n, s.id AS session_id, s.completed_at,
           s.expected_completion_date + 735 AS valid_until,
           s.expected_completion_date + 735 < CAST(:today AS date) - 8 AS over
    FROM generate_series(1, CAST(:sessions AS integer)) AS n
    JOIN test_sessions AS s ON s.id = md5('clearpath session ' || n)::uuid
    WHERE n % 1000 * 919 % 1000 < 700
      AND s.completed_at IS NOT NULL
) AS planned
ON CONFLICT DO NOTHING
