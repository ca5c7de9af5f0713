-- a row is an obligation of one of its site's permits
INSERT INTO obligations (
    id, company_id, site_id, document_id, module_id, summary, original_text, category, condition_reference, frequency,
    base_date, evidence_required, assigned_to, confidence_score, review_status, import_source, created_by, created_at,
    updated_at
)
SELECT pg_temp.make_id('obligation', n), pg_temp.make_id('company', pg_temp.company_of_site(of_site.site)),
       pg_temp.make_id('site', of_site.site), document.id, document.module_id,
       what.summary, what.summary || ' as condition ' || of_site.condition || ' of the permit has it.',
       what.category, of_site.condition, often.frequency,
       pg_temp.today() - 30 - pg_temp.roll('base', n, 700)
           -- what is due once is due on its base date, which lies on either side of today
           + CASE WHEN often.frequency = 'ONE_TIME' THEN pg_temp.roll('once', n, 800) ELSE 0 END,
       pg_temp.roll('evidence', n, 10) > 0,
       CASE WHEN pg_temp.roll('assigned', n, 5) > 0
           THEN pg_temp.make_id('user', 9 * (pg_temp.company_of_site(of_site.site) - 1) + 3 + pg_temp.roll('to', n, 6)) END,
       0.7 + pg_temp.roll('confidence', n, 30) / 100.0,
       CASE WHEN pg_temp.roll('confidence', n, 30) < 15 THEN 'PENDING' ELSE 'CONFIRMED' END,
       CASE WHEN pg_temp.roll('source', n, 4) = 0 THEN 'MANUAL' ELSE 'PDF_EXTRACTION' END,
       pg_temp.make_id('user', 9 * (pg_temp.company_of_site(of_site.site) - 1) + 2),
       pg_temp.at(pg_temp.today() - 400, 8), pg_temp.at(pg_temp.today() - 1, 8)
FROM generate_series(1, pg_temp.obligations()) AS n
CROSS JOIN LATERAL (
    SELECT 1 + (n - 1) % pg_temp.sites() AS site,
           concat_ws('.', 1 + pg_temp.roll('part', n, 5), 1 + pg_temp.roll('chapter', n, 9), 1 + n / pg_temp.sites())
               AS condition
) AS of_site
JOIN documents AS document
    ON document.id = pg_temp.make_id('document', 4 * of_site.site - 3 + pg_temp.roll('permit', n, 4))
JOIN (VALUES
    (0, 'Submit the annual monitoring report', 'REPORTING'),
    (1, 'Sample the surface water outfall', 'MONITORING'),
    (2, 'Inspect the bunds and interceptors', 'OPERATIONAL'),
    (3, 'Service the abatement plant', 'MAINTENANCE'),
    (4, 'Keep the waste register', 'RECORD_KEEPING'),
    (5, 'Check the noise at the boundary', 'MONITORING'),
    (6, 'Calibrate the flow meter', 'MAINTENANCE'),
    (7, 'Review the accident management plan', 'OPERATIONAL')
) AS what (place, summary, category) ON what.place = pg_temp.roll('what', n, 8)
CROSS JOIN LATERAL (
    SELECT (ARRAY['MONTHLY', 'MONTHLY', 'MONTHLY', 'QUARTERLY', 'QUARTERLY', 'ANNUAL', 'ANNUAL', 'WEEKLY', 'DAILY',
        'ONE_TIME'])[1 + pg_temp.roll('often', n, 10)] AS frequency
) AS often
