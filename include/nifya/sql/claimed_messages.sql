-- a row is a claimed message as it was packed; a digest has no frame
SELECT batch_id::text, position, message, CAST(NULL AS text) AS frame
FROM email_attempts
WHERE batch_id = ANY (CAST(:batches AS uuid[]))
