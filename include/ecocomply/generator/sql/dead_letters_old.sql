-- a row is a job that failed long ago, which a person has settled since
INSERT INTO dead_letter_queue (
    id, job_id, company_id, error_message, retry_count, last_attempted_at, resolved_at, resolution, created_at
)
SELECT pg_temp.make_id('old dead letter', n), j.id, j.company_id, j.error_message, 0, j.completed_at,
       pg_temp.at(pg_temp.today() - 40, 9), 'PERMANENT_FAILURE', j.completed_at
FROM generate_series(1, least(2, pg_temp.companies())) AS n
JOIN background_jobs AS j ON j.id = pg_temp.make_id('old job', n)
