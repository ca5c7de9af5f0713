-- a row is a stuck idea that can be worked on again
UPDATE idea_queue AS i
SET status = 'selected',
    updated_at = clock_timestamp()
WHERE i.id = ANY (CAST(:ids AS uuid[]))
  AND i.status = 'processing'
  AND i.updated_at < now() - make_interval(secs => :stuck_after)
