-- a row is an alert with what the provider said of it
UPDATE alert
SET delivered_at = CASE WHEN :delivered THEN clock_timestamp() END,
    delivery_claimed_at = CASE WHEN :release THEN NULL ELSE delivery_claimed_at END,
    last_error = :error
WHERE id = CAST(:id AS uuid)
  AND delivered_at IS NULL
