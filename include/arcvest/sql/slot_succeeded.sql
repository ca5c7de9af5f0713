-- a row is a slot that the application has done
UPDATE sync_slots AS s
SET succeeded_at = clock_timestamp(),
    last_error = NULL,
    outcome_unknown = false
WHERE s.job = :job
  AND s.slot = CAST(:slot AS timestamptz)
  AND s.succeeded_at IS NULL
