-- a row is a certificate with its holder, the latest issued first (before them what has no date)
SELECT
    c.id,
    c.certificate_number,
    c.status::text AS status,
    c.issued_on,
    c.valid_until,
    c.expired_at,
    c.pdf_needs_regeneration,
    c.pdf_path,
    c.current_pdf_path,
    c.rendered_at,
    c.render_error,
    c.render_failed_at,
    c.past_at_adoption,
    u.email AS holder_email,
    u.full_name AS holder,
    s.address
FROM certificates AS c
LEFT JOIN test_sessions AS s ON s.id = c.test_session_id
LEFT JOIN users AS u ON u.id = s.user_id
WHERE (NOT CAST(:by_status AS boolean) OR c.status = :status)
  AND (NOT CAST(:without_pdf AS boolean) OR c.pdf_path IS NULL)
  AND (NOT CAST(:failed AS boolean) OR c.render_failed_at IS NOT NULL)
  AND (CAST(:number AS text) IS NULL OR c.certificate_number = :number)
  AND (CAST(:some_id AS uuid) IS NULL OR c.id = :some_id OR c.test_session_id = :some_id)
  AND (CAST(:user_ids AS uuid[]) IS NULL OR s.user_id = ANY (CAST(:user_ids AS uuid[])))
  AND (
      CAST(:after_on AS date) IS NULL
      OR (c.issued_on, c.id) < (CAST(:after_on AS date), CAST(:after_id AS uuid))
  )
  AND (
      CAST(:after_on AS date) IS NOT NULL
      OR CAST(:after_id AS uuid) IS NULL
      OR c.issued_on IS NOT NULL
      OR c.id < CAST(:after_id AS uuid)
  )
ORDER BY c.issued_on DESC, c.id DESC
LIMIT :limit
