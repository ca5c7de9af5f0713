-- a row is a claimed message as it was packed, and the name of its frame
SELECT batch_id::text, position, message, frame
FROM email_attempts
WHERE batch_id = ANY (CAST(:batches AS uuid[]))
