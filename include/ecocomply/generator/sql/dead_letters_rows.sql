-- a row is a job that failed for good, and one that a person has settled
INSERT INTO dead_letter_queue (
    id, job_id, company_id, error_message, retry_count, last_attempted_at, resolved_at, resolution, created_at
)
SELECT pg_temp.make_id('dead letter', n), j.id, j.company_id, 'the file store did not answer', 2, j.completed_at,
       CASE WHEN j.status = 'COMPLETED' THEN pg_temp.at(pg_temp.today() - 1, 9) END,
       CASE WHEN j.status = 'COMPLETED' THEN 'PERMANENT_FAILURE' END, j.completed_at
FROM generate_series(1, pg_temp.companies()) AS n
JOIN background_jobs AS j ON j.id = pg_temp.make_id('job', n)
