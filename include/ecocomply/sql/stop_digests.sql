-- a row is a preference by which a type that came in a digest comes by mail no more; nothing else changes
INSERT INTO notification_preferences (
    company_id, user_id, notification_type, channel, is_enabled, frequency_preference
)
SELECT p.company_id, p.user_id, p.notification_type, 'EMAIL', FALSE, p.frequency_preference
FROM digests AS d
JOIN notification_preferences AS p
    ON p.user_id = d.user_id
    AND (p.channel IS NULL OR p.channel::text = 'EMAIL')
    AND p.frequency_preference::text = d.frequency::text || '_DIGEST'
WHERE d.unsubscribe_token = CAST(:token AS uuid)
  AND d.created_at > now() - :days * interval '1 day'
  -- of a type's own preference and that for all channels, the first is the one that counts
  AND (
      p.channel IS NOT NULL
      OR NOT EXISTS (
          SELECT FROM notification_preferences AS own
          WHERE own.user_id = p.user_id
            AND own.notification_type = p.notification_type
            AND own.channel::text = 'EMAIL'
      )
  )
ON CONFLICT (user_id, notification_type, channel) DO UPDATE SET is_enabled = FALSE, updated_at = clock_timestamp()
