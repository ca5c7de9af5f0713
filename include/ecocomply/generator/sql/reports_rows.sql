-- a row is a report that somebody asked for; half of them wait
INSERT INTO reports (id, company_id, site_id, report_type, format, status, requested_by, row_count, generated_at, created_at)
SELECT pg_temp.make_id('report', 2 * c + k), pg_temp.make_id('company', c), pg_temp.make_id('site', 3 * c - k),
       pg_temp.pick('report', 2 * c + k, ARRAY['OBLIGATIONS', 'EVIDENCE_REGISTER', 'DEADLINE_CALENDAR']),
       CASE WHEN k = 0 THEN 'PDF' ELSE 'EXCEL' END, CASE WHEN k = 0 THEN 'COMPLETED' ELSE 'PENDING' END,
       pg_temp.make_id('user', 9 * c - 8), CASE WHEN k = 0 THEN 120 END,
       CASE WHEN k = 0 THEN pg_temp.at(pg_temp.today() - 3, 10) END, pg_temp.at(pg_temp.today() - 3, 9)
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(0, 1) AS k
