-- a row is a digest that nobody has claimed and that may go out now, oldest first
SELECT d.id
FROM digests AS d
WHERE (d.status = 'queued' OR (d.status = 'failed' AND d.retry_count < 3 AND NOT d.permanent))
  AND d.batch_id IS NULL
  AND coalesce(d.next_attempt_at, '-infinity') <= now()
  AND (CAST(:not_after AS timestamptz) IS NULL OR d.due_at <= CAST(:not_after AS timestamptz))
-- no id of our own: a preview makes others than the run, and would show another order
ORDER BY d.due_at, d.user_id
