-- a row is a notification that was settled without a provider, with what became of it and why
UPDATE notifications AS n
SET status = CASE w.what
        WHEN 'CANCELLED' THEN 'CANCELLED' WHEN 'DELIVERED' THEN 'DELIVERED' WHEN 'FAILED' THEN 'FAILED' ELSE n.status
    END,
    delivery_status = CASE w.what
        WHEN 'DELIVERED' THEN 'DELIVERED' WHEN 'FAILED' THEN 'FAILED' ELSE n.delivery_status
    END,
    delivery_provider = CASE w.what WHEN 'DELIVERED' THEN 'DATABASE' ELSE n.delivery_provider END,
    delivery_error = CASE w.what WHEN 'FAILED' THEN w.reason ELSE n.delivery_error END,
    status_reason = w.reason,
    sent_at = CASE w.what WHEN 'DELIVERED' THEN clock_timestamp() ELSE n.sent_at END,
    delivered_at = CASE w.what WHEN 'DELIVERED' THEN clock_timestamp() ELSE n.delivered_at END,
    updated_at = clock_timestamp()
FROM unnest(CAST(:ids AS uuid[]), CAST(:whats AS text[]), CAST(:reasons AS text[])) AS w (id, what, reason)
WHERE n.id = w.id
  -- said twice: without it a table without statistics is joined row by row
  AND n.id = ANY (CAST(:ids AS uuid[]))
  AND n.status IN ('PENDING', 'QUEUED', 'RETRYING')
  AND n.batch_id IS NULL
  AND n.digest_id IS NULL
RETURNING n.id, w.what, w.reason
