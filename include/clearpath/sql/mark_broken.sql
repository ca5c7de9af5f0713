-- a row is a mail that can't be rendered until the code is mended
UPDATE email_log AS e
SET status = 'failed',
    permanent = true,
    last_error = b.reason,
    updated_at = clock_timestamp()
FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS b (id, reason)
WHERE e.id = b.id
  AND e.batch_id IS NULL
  AND e.status IN ('queued', 'failed')
