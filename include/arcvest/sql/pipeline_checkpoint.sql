-- a row is an idea whose step is saved; under a claim that was taken away, or of an idea that nobody wants any more, none
WITH held AS MATERIALIZED (
    SELECT q.id
    FROM job_queue AS q
    WHERE q.id = CAST(:job AS uuid)
      AND q.status = 'processing'
      AND q.attempts = :attempt
      AND q.claimed_by = :owner
    FOR UPDATE
)
UPDATE idea_queue AS i
SET pipeline_step = :step,
    pipeline_data = coalesce(i.pipeline_data, '{}'::jsonb) || CAST(:saved AS jsonb),
    updated_at = clock_timestamp()
FROM held
WHERE i.id = CAST(:idea AS uuid)
  AND i.status IN ('processing', 'selected')
