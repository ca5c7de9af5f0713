-- a row is a job that waits, was lost by its worker, or ended long ago: work for the platform's own jobs
INSERT INTO background_jobs (id, job_type, payload, created_by, company_id, scheduled_for, created_at)
SELECT pg_temp.make_id(kind || ' job', n), 'UPDATE_COMPLIANCE_CLOCKS',
       jsonb_build_object('company_id', pg_temp.make_id('company', n)), pg_temp.make_id('user', 9 * n - 8),
       pg_temp.make_id('company', n), pg_temp.at(pg_temp.today() - days, 9), pg_temp.at(pg_temp.today() - days, 9)
FROM generate_series(1, least(2, pg_temp.companies())) AS n,
     (VALUES ('waiting', 1), ('lost', 1), ('old', 120)) AS kinds (kind, days)
