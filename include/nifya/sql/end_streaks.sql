-- a row is an open job whose series has succeeded meanwhile, at an earlier time that was tried again
UPDATE scheduled_jobs AS o
SET failures_in_row = 0,
    failing_since = NULL,
    failing_told = FALSE,
    failing_cause = NULL
FROM scheduled_jobs AS j
WHERE j.id = ANY (CAST(:ids AS uuid[]))
  AND o.series_id = coalesce(j.series_id, j.id)
  AND o.next_run_at > j.next_run_at
  AND o.status IN ('pending', 'processing')
  AND o.failures_in_row > 0
