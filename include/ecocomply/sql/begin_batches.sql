-- a row is a claimed message that is handed to the provider from now on
UPDATE email_attempts
SET begun_at = clock_timestamp()
WHERE batch_id = ANY (CAST(:batches AS uuid[]))
  AND outcome IS NULL
  AND begun_at IS NULL
