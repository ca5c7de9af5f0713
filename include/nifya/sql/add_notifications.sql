-- a row is a notification of a subscription that is still active, of an address that it was not told of before
INSERT INTO notifications (user_id, subscription_id, title, content, source_url, metadata)
SELECT s.user_id, s.id, n.title, n.content, n.source_url, CAST(n.metadata AS jsonb)
FROM unnest(
    CAST(:subscriptions AS uuid[]), CAST(:titles AS text[]), CAST(:contents AS text[]),
    CAST(:urls AS text[]), CAST(:metadata AS text[])
) WITH ORDINALITY AS n (subscription_id, title, content, source_url, metadata, place)
JOIN subscriptions AS s ON s.id = n.subscription_id
WHERE s.active
  AND NOT EXISTS (
      SELECT 1
      FROM notifications AS told
      WHERE told.subscription_id = s.id
        AND told.source_url = n.source_url
  )
ORDER BY n.place
ON CONFLICT DO NOTHING
