-- a row is a job of the demo that is claimed, as long ago as its story has it
UPDATE job_queue AS q
SET status = 'processing',
    attempts = s.attempts,
    started_at = s.started_at
FROM unnest(CAST(:id AS uuid[]), CAST(:attempts AS integer[]), CAST(:started_at AS timestamptz[]))
    AS s (id, attempts, started_at)
WHERE q.id = s.id
  AND q.status = 'pending'
  AND q.started_at IS NULL
