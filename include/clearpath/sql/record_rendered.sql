-- a row is a certificate with the files that were made for it; an original is written once
UPDATE certificates AS c
SET pdf_path = coalesce(c.pdf_path, m.original),
    current_pdf_path = m.current,
    -- one that expired while its PDF was being made needs another
    pdf_needs_regeneration = c.status::text <> m.status,
    rendered_at = clock_timestamp(),
    render_error = NULL,
    render_failed_at = NULL,
    updated_at = clock_timestamp()
FROM unnest(CAST(:ids AS uuid[]), CAST(:originals AS text[]), CAST(:currents AS text[]), CAST(:statuses AS text[]))
    AS m (id, original, current, status)
WHERE c.id = m.id
