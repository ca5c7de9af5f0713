-- a row is an open dead letter that the filter leaves, the oldest first
SELECT q.id
FROM dead_letter_queue AS q
JOIN background_jobs AS j ON j.id = q.job_id
WHERE {letters_match}
    AND q.resolved_at IS NULL
ORDER BY q.created_at, q.id
LIMIT :at_most
