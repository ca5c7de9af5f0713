-- a row is a job of an idea that is not at an end
SELECT q.id, q.status::text AS status
FROM job_queue AS q
WHERE q.job_type = 'process_pipeline'
  AND q.payload ->> 'idea_id' IN (:idea, upper(:idea))
  AND q.status IN ('pending', 'processing')
ORDER BY q.status DESC, q.id
