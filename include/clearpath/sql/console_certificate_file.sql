-- the row says which files a certificate has
SELECT c.id, c.certificate_number, c.status::text AS status, c.pdf_needs_regeneration, c.pdf_path, c.current_pdf_path
FROM certificates AS c
WHERE c.id = :certificate_id
