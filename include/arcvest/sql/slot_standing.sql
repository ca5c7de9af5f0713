-- a row is a slot, with whether it is done, or its outcome is a person's to find out
SELECT s.outcome_unknown, s.succeeded_at IS NOT NULL AS succeeded
FROM sync_slots AS s
WHERE s.job = :job
  AND s.slot = CAST(:slot AS timestamptz)
