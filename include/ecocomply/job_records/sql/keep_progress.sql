-- a row is a running job with how far it is; saying so is a heartbeat
UPDATE background_jobs AS q
SET progress = CAST(:progress AS jsonb),
    heartbeat_at = clock_timestamp(),
    updated_at = clock_timestamp()
WHERE q.id = :id
  AND q.status = 'RUNNING'
  AND q.attempts = :attempt
  AND q.claimed_by = :owner
