-- a row is a scheduled job that fits the filters, the latest planned first
SELECT j.id, j.type, j.data, j.schedule, j.status, j.next_run_at, j.last_run_at, j.created_at, j.updated_at,
       j.created_by, j.error, j.series_id, j.recurrence_ended, j.attempts, j.retry_at, j.finished_at,
       j.failures_in_row
FROM scheduled_jobs AS j
WHERE (CAST(:status AS text) IS NULL OR j.status = CAST(:status AS text))
  AND (CAST(:type AS text) IS NULL OR j.type = CAST(:type AS text))
  AND (CAST(:subscription AS text) IS NULL OR lower(j.data ->> 'subscriptionId') = CAST(:subscription AS text))
  AND (CAST(:series AS uuid) IS NULL OR j.series_id = CAST(:series AS uuid) OR j.id = CAST(:series AS uuid))
  AND (CAST(:created_by AS text) IS NULL OR j.created_by = CAST(:created_by AS text))
  AND (CAST(:due_from AS timestamptz) IS NULL OR j.next_run_at >= CAST(:due_from AS timestamptz))
  AND (CAST(:due_before AS timestamptz) IS NULL OR j.next_run_at < CAST(:due_before AS timestamptz))
  AND (
      CAST(:after_id AS uuid) IS NULL
      OR (j.next_run_at, j.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
ORDER BY j.next_run_at DESC, j.id DESC
LIMIT :limit
