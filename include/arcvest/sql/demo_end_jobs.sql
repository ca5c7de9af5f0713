-- a row is a job of the demo that has come to its end
UPDATE job_queue AS q
SET status = CASE
        WHEN s.outcome = 'failed' THEN 'failed'
        WHEN s.outcome = 'completed' THEN 'completed'
        -- never reached: it gives the words the column's type, which may be an enum
        ELSE q.status
    END,
    completed_at = s.completed_at,
    last_error = s.last_error
FROM unnest(
    CAST(:id AS uuid[]), CAST(:outcome AS text[]), CAST(:completed_at AS timestamptz[]), CAST(:last_error AS text[])
) AS s (id, outcome, completed_at, last_error)
WHERE q.id = s.id
  AND q.status = 'processing'
  AND q.claimed_by IS NULL
  AND q.completed_at IS NULL
