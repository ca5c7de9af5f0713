-- a row is a digest that nobody has claimed and that may go out now, oldest first
SELECT d.id
FROM digests AS d
WHERE d.status = 'queued'
  AND d.frequency::text = :frequency
  AND d.batch_id IS NULL
-- no id of our own: a preview makes others than the run, and would show another order
ORDER BY d.period_start, d.user_id
