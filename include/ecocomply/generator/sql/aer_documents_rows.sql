-- a row is last year's report of a registration
INSERT INTO aer_documents (
    id, document_id, reporting_period_start, reporting_period_end, submission_deadline, status, total_run_hours,
    is_validated, generated_at, dedupe_key
)
SELECT pg_temp.make_id('aer', s), pg_temp.make_id('document', 4 * s - 1), year.first,
       (year.first + interval '1 year - 1 day')::date, (year.first + interval '1 year 3 months')::date, 'READY', 120,
       true, pg_temp.at((year.first + interval '1 year 14 days')::date, 8),
       'period/' || extract(year FROM year.first)
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN (SELECT (date_trunc('year', pg_temp.today()::timestamp) - interval '1 year')::date AS first) AS year
