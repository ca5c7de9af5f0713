-- one row: how many dead letters the filter leaves
SELECT count(*)
FROM dead_letter_queue AS q
JOIN background_jobs AS j ON j.id = q.job_id
WHERE {letters_match}
