-- a row is a digest of which no mail is made, with the reason; what stood in it waits again
WITH marked AS (
    UPDATE digests AS d
    SET status = 'abandoned',
        permanent = TRUE,
        last_error = w.reason,
        updated_at = clock_timestamp()
    FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS w (id, reason)
    WHERE d.id = w.id
      AND d.status = 'queued'
      AND d.batch_id IS NULL
    RETURNING d.id, w.reason
)
UPDATE notifications AS n
SET digest_id = NULL,
    status_reason = 'no digest: ' || m.reason,
    updated_at = clock_timestamp()
FROM marked AS m
WHERE n.digest_id = m.id
  AND n.status = 'PENDING'
