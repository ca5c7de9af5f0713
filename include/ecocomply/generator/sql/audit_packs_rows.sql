-- a row is a pack of a site, or of the whole company for its board
INSERT INTO audit_packs (
    id, company_id, site_id, document_id, pack_type, recipient_type, date_range_start, date_range_end, storage_path,
    generated_by, generated_at, dedupe_key, created_at
)
SELECT pg_temp.make_id('pack', 2 * c + k), pg_temp.make_id('company', c),
       CASE WHEN k = 0 THEN pg_temp.make_id('site', 3 * c) END,
       CASE WHEN k = 0 THEN pg_temp.make_id('document', 12 * c - 3) END,
       CASE WHEN k = 0 THEN 'AUDIT_PACK' ELSE 'BOARD_MULTI_SITE_RISK' END,
       CASE WHEN k = 0 THEN 'REGULATOR' ELSE 'BOARD' END, pg_temp.today() - 365, pg_temp.today() - 1,
       'audit-packs/' || pg_temp.make_id('company', c) || '/' || pg_temp.make_id('pack', 2 * c + k) || '/audit-pack.pdf',
       pg_temp.make_id('user', 9 * c - 8), pg_temp.at(pg_temp.today() - 5, 11),
       'generated/' || pg_temp.make_id('pack', 2 * c + k), pg_temp.at(pg_temp.today() - 5, 11)
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(0, 1) AS k
