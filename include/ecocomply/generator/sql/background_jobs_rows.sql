-- a row is a job that a company's owner asked for, or the service's own where there is no company
INSERT INTO background_jobs (id, job_type, payload, created_by, company_id, scheduled_for, created_at)
SELECT pg_temp.make_id('job', n), CASE WHEN n = 0 THEN 'RISK_SCORE_CALCULATION' ELSE 'report-generation-job' END,
       jsonb_build_object('report_id', pg_temp.make_id('report', 2 * n)),
       CASE WHEN n > 0 THEN pg_temp.make_id('user', 9 * n - 8) END,
       CASE WHEN n > 0 THEN pg_temp.make_id('company', n) END,
       pg_temp.at(pg_temp.today() - 3, 9), pg_temp.at(pg_temp.today() - 3, 9)
FROM generate_series(0, pg_temp.companies()) AS n
