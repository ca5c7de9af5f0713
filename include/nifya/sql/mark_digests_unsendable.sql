-- a row is a digest of which no mail is made, with the reason
UPDATE digests AS d
SET status = w.status,
    permanent = TRUE,
    last_error = w.reason,
    updated_at = clock_timestamp()
FROM unnest(
    CAST(:ids AS uuid[]), CAST(:due AS timestamptz[]), CAST(:statuses AS text[]), CAST(:reasons AS text[])
) AS w (id, due_at, status, reason)
WHERE d.id = w.id
  -- one that took in something since it was looked at may have a mail
  AND d.due_at = w.due_at
  AND d.status IN ('queued', 'failed')
  AND d.batch_id IS NULL
