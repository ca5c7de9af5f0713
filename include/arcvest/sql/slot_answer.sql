-- a row is a slot with what the application said when it was done
UPDATE sync_slots AS s
SET answer = CAST(:answer AS jsonb)
WHERE s.job = :job
  AND s.slot = CAST(:slot AS timestamptz)
  AND s.succeeded_at IS NOT NULL
