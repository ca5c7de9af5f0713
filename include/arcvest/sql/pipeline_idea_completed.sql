-- a row is an idea whose article goes into the calendar; one that went another way meanwhile is none
UPDATE idea_queue AS i
SET status = 'completed',
    pipeline_step = 'completed',
    last_error = NULL,
    updated_at = clock_timestamp()
WHERE i.id = CAST(:idea AS uuid)
  AND i.status = 'processing'
