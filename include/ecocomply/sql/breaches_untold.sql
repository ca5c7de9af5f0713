-- a row is a deadline that has passed undone, and that nobody was told of
SELECT d.id
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id
WHERE d.due_date < CAST(:today AS date)
  AND d.status IN ('PENDING', 'DUE_SOON', 'OVERDUE')
  AND d.due_date >= (SELECT a.day FROM adoption AS a)
  -- what was told before this date had passed was of another date
  AND (
      NOT d.breach_notification_sent
      OR CAST(d.breach_detected_at AT TIME ZONE 'UTC' AS date) <= d.due_date
      -- marked as seen at the adoption, for a date that has been moved since
      OR (d.past_at_adoption AND d.breach_detected_at IS NULL)
  )
  AND o.deleted_at IS NULL
  AND o.status <> 'NOT_APPLICABLE'
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
