-- a row is an outage that is over
UPDATE outage
SET closed_at = clock_timestamp()
WHERE service = :service
  AND closed_at IS NULL
