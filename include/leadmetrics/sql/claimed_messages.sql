-- a row is a claimed message as it was packed; none stands in a frame
SELECT batch_id::text, position, message, CAST(NULL AS text) AS frame
FROM notification_attempts
WHERE batch_id = ANY (CAST(:batches AS uuid[]))
