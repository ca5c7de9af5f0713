-- a row is an idea that is written up from now on
UPDATE idea_queue AS i
SET status = 'processing',
    last_error = NULL,
    updated_at = clock_timestamp()
WHERE i.id = CAST(:idea AS uuid)
  AND i.status NOT IN ('completed', 'rejected')
RETURNING i.id
