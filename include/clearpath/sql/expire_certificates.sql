-- a row is a certificate that expires; its PDF is marked when somebody asks for it
WITH due AS (
    SELECT id
    FROM certificates
    WHERE id = ANY (CAST(:ids AS uuid[]))
      AND status = 'valid'
      AND valid_until < :today
    ORDER BY id
    FOR UPDATE
)
UPDATE certificates AS c
SET status = 'expired',
    expired_at = clock_timestamp(),
    pdf_needs_regeneration = true,
    updated_at = clock_timestamp()
FROM due
WHERE c.id = due.id
