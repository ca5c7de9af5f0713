-- a row is a slot whose call failed, or whose outcome nobody knows
UPDATE sync_slots AS s
SET last_error = :error,
    outcome_unknown = s.outcome_unknown OR :unknown
WHERE s.job = :job
  AND s.slot = CAST(:slot AS timestamptz)
  AND s.succeeded_at IS NULL
