-- a row is a file for seven obligations out of ten
INSERT INTO evidence_items (
    id, company_id, site_id, file_name, file_type, mime_type, file_size_bytes, file_hash, storage_path, upload_date,
    uploaded_by, expiry_date, validation_status, created_at, updated_at
)
SELECT pg_temp.make_id('evidence', n), o.company_id, o.site_id,
       replace(lower(o.summary), ' ', '-') || '.' || kind.ending, kind.file_type, kind.mime_type,
       1000 + pg_temp.roll('evidence size', n, 4000000), encode(sha256(('evidence' || n)::bytea), 'hex'),
       'evidence/' || o.company_id || '/' || o.site_id || '/' || pg_temp.make_id('evidence', n) || '/'
           || pg_temp.make_id('evidence file', n) || '.' || kind.ending,
       uploaded.at, o.assigned_to,
       CASE WHEN pg_temp.roll('evidence expires', n, 5) < 2
           THEN pg_temp.today() - 30 + pg_temp.roll('evidence expiry', n, 400) END,
       CASE WHEN pg_temp.roll('valid', n, 20) = 0 THEN 'REJECTED' WHEN pg_temp.roll('valid', n, 20) < 4 THEN 'PENDING'
            ELSE 'APPROVED' END,
       uploaded.at, uploaded.at
FROM generate_series(1, pg_temp.obligations()) AS n
JOIN obligations AS o ON o.id = pg_temp.make_id('obligation', n)
JOIN (VALUES
    (0, 'PDF', 'application/pdf', 'pdf'), (1, 'IMAGE', 'image/jpeg', 'jpg'), (2, 'CSV', 'text/csv', 'csv')
) AS kind (place, file_type, mime_type, ending) ON kind.place = pg_temp.roll('kind', n, 3)
CROSS JOIN LATERAL (SELECT pg_temp.at(pg_temp.today() - 1 - pg_temp.roll('uploaded', n, 1200), 14) AS at) AS uploaded
WHERE pg_temp.roll('has evidence', n, 10) < 7
