-- a row is an open dead letter of the last day that no user hears of
SELECT d.id, q.job_type, d.retry_count, d.error_message
FROM dead_letter_queue AS d
JOIN background_jobs AS q ON q.id = d.job_id
WHERE d.resolved_at IS NULL
  AND d.created_at > now() - interval '1 day'
  AND d.error_context @> '{"tell_operators": true}'
ORDER BY d.created_at, d.id
