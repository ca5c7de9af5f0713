-- a row is a dead letter that nobody has decided on
SELECT d.*, q.job_type, q.payload, c.name AS company_name
FROM dead_letter_queue AS d
JOIN background_jobs AS q ON q.id = d.job_id
LEFT JOIN companies AS c ON c.id = d.company_id
WHERE d.resolved_at IS NULL
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (d.created_at, d.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
ORDER BY d.created_at DESC, d.id DESC
LIMIT :at_most
