-- a row is one of a site's four permits: the environmental one, the consent, the registration, the licence
INSERT INTO documents (
    id, site_id, module_id, title, document_type, permit_number, regulator, expiry_date, assigned_to, status,
    storage_path, mime_type, file_size_bytes, file_hash, page_count, is_native_pdf, extraction_status, extracted_text,
    extraction_completed_at, uploaded_by, created_at, updated_at
)
SELECT pg_temp.make_id('document', n), pg_temp.make_id('site', site), module.id,
       (ARRAY['Environmental permit', 'Trade effluent consent', 'MCPD registration', 'Waste carrier licence'])[kind],
       (ARRAY['PERMIT', 'CONSENT', 'REGISTRATION', 'LICENCE'])[kind],
       (ARRAY['EPR', 'TEC', 'MCP', 'CBDU'])[kind] || '/' || upper(left(md5(n::text), 2)) || (1000 + n),
       (ARRAY['Environment Agency', 'Yorkshire Water', 'Environment Agency', 'Natural Resources Wales'])[kind],
       -- of each company one is due for renewal now
       CASE WHEN n % 12 = 2 THEN pg_temp.today() + 65 + pg_temp.roll('soon', n, 20)
            WHEN pg_temp.roll('expires', n, 12) > 0 THEN pg_temp.today() + pg_temp.roll('expiry', n, 900) - 20 END,
       CASE WHEN pg_temp.roll('owner', n, 5) > 0
           THEN pg_temp.make_id('user', 9 * (pg_temp.company_of_site(site) - 1) + 1 + pg_temp.roll('owner of', n, 7)) END,
       CASE WHEN pg_temp.roll('document status', n, 20) = 0 AND n % 12 <> 2 THEN 'SUPERSEDED' ELSE 'ACTIVE' END,
       'documents/' || pg_temp.make_id('company', pg_temp.company_of_site(site)) || '/' || pg_temp.make_id('site', site)
           || '/' || pg_temp.make_id('document', n) || '/original.pdf',
       'application/pdf', 40000 + pg_temp.roll('size', n, 9000000), encode(sha256(n::text::bytea), 'hex'),
       4 + pg_temp.roll('pages', n, 80), true, 'COMPLETED',
       'Condition 2.3.1. ' || (ARRAY[
           'The operator shall keep records. Emergency power is by a standby generator beside the CHP plant.',
           'Trade effluent shall be sampled weekly at the discharge point before it enters the sewer.',
           'The medium combustion plant shall not run for more than 500 hours a year.',
           'Hazardous waste leaves the site with a consignment note alone.'])[kind],
       pg_temp.at(pg_temp.today() - 300, 10), pg_temp.make_id('user', 9 * (pg_temp.company_of_site(site) - 1) + 2),
       pg_temp.at(pg_temp.today() - 301, 10), pg_temp.at(pg_temp.today() - 300, 10)
FROM generate_series(1, 4 * pg_temp.sites()) AS n
CROSS JOIN LATERAL (SELECT (n + 3) / 4 AS site, 1 + (n - 1) % 4 AS kind) AS of_site
JOIN modules AS module ON module.module_code = 'MODULE_' || kind
