-- a row is a slot that is called from now on; one that has succeeded, or whose outcome is unknown, is not
INSERT INTO sync_slots AS s (job, slot, attempts, begun_at)
VALUES (:job, CAST(:slot AS timestamptz), 1, clock_timestamp())
ON CONFLICT (job, slot) DO UPDATE
SET attempts = s.attempts + 1,
    begun_at = clock_timestamp()
WHERE s.succeeded_at IS NULL
  AND NOT s.outcome_unknown
RETURNING s.slot
