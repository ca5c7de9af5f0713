-- a row is an idea in processing for long whose job is not alive any more
SELECT i.id
FROM idea_queue AS i
WHERE i.status = 'processing'
  AND i.updated_at < now() - make_interval(secs => :stuck_after)
  AND NOT EXISTS (
      SELECT FROM job_queue AS q
      WHERE q.job_type = 'process_pipeline'
        AND q.payload ->> 'idea_id' IN (i.id::text, upper(i.id::text))
        AND q.status = 'processing'
        AND coalesce(q.heartbeat_at, q.started_at) >= now() - make_interval(secs => :stuck_after)
  )
ORDER BY i.id
