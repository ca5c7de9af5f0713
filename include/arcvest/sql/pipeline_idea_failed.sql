-- a row is an idea whose job failed: it waits for the next try, or is at an end with its job
UPDATE idea_queue AS i
SET status = CASE WHEN CAST(:ended AS boolean) THEN 'failed' ELSE 'selected' END,
    last_error = :reason,
    updated_at = clock_timestamp()
WHERE i.id = CAST(:idea AS uuid)
  AND i.status = 'processing'
