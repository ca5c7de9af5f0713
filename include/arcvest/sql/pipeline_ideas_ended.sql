-- a row is an idea whose last job has failed for good: nobody would work on it any more
WITH ended AS MATERIALIZED (
    SELECT q.payload ->> 'idea_id' AS idea, max(e.error) AS error
    FROM unnest(CAST(:keys AS uuid[]), CAST(:errors AS text[])) AS e (id, error)
    JOIN job_queue AS q ON q.id = e.id
    WHERE q.job_type = 'process_pipeline'
      AND q.payload ->> 'idea_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    GROUP BY q.payload ->> 'idea_id'
)
UPDATE idea_queue AS i
SET status = 'failed',
    last_error = ended.error,
    updated_at = clock_timestamp()
FROM ended
WHERE i.id = CAST(ended.idea AS uuid)
  AND i.status IN ('processing', 'selected')
  AND NOT EXISTS (
      SELECT FROM job_queue AS q
      WHERE q.job_type = 'process_pipeline'
        AND q.payload ->> 'idea_id' = ended.idea
        AND q.status IN ('pending', 'processing')
  )
