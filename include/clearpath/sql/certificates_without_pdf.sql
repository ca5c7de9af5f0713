-- a row is a certificate that has no PDF yet, with all that is printed on it
SELECT c.id, c.certificate_number, c.status::text AS status, c.issued_on, c.valid_until, c.pdf_path, c.current_pdf_path,
       c.pdf_needs_regeneration, u.full_name AS holder, s.address, s.kit_serial_number,
       r.value_bq_m3, coalesce(r.below_detection, false) AS below_detection, k.name AS contractor
FROM certificates AS c
JOIN test_sessions AS s ON s.id = c.test_session_id
JOIN users AS u ON u.id = s.user_id
LEFT JOIN results AS r ON r.test_session_id = s.id
LEFT JOIN contractors AS k ON k.id = s.contractor_id
WHERE c.pdf_path IS NULL
  AND NOT c.past_at_adoption
  AND c.id > coalesce(CAST(:after AS uuid), '00000000-0000-0000-0000-000000000000')
ORDER BY c.id
LIMIT :limit
