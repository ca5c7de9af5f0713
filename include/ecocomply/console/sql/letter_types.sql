-- a row is a type of jobs that have dead letters
SELECT j.job_type
FROM dead_letter_queue AS q
JOIN background_jobs AS j ON j.id = q.job_id
GROUP BY j.job_type
ORDER BY j.job_type
LIMIT :limit
