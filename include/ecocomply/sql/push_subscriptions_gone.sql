-- a row is a subscription that its push service does not know any more
UPDATE push_subscriptions
SET gone_at = clock_timestamp(),
    updated_at = clock_timestamp()
WHERE endpoint = ANY (CAST(:endpoints AS text[]))
  AND gone_at IS NULL
