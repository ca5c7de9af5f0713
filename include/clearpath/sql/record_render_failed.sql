-- a row is a certificate that could not be printed, with the reason why
UPDATE certificates AS c
SET render_error = f.error,
    render_failed_at = clock_timestamp(),
    updated_at = clock_timestamp()
FROM unnest(CAST(:ids AS uuid[]), CAST(:errors AS text[])) AS f (id, error)
WHERE c.id = f.id
