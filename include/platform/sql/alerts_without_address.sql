-- a row is an alert that stands in the log only
UPDATE alert
SET no_address = true
WHERE delivered_at IS NULL
  AND NOT no_address
  AND delivery_claimed_at IS NULL
