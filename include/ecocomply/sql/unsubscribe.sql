-- a row is a user's preference by which no more of a type comes by a channel
INSERT INTO notification_preferences (company_id, user_id, notification_type, channel, is_enabled)
SELECT u.company_id, u.id, :notification_type, t.channel, FALSE
FROM users AS u
-- an application may have an enum type of its own for channels
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::notification_preferences, jsonb_build_object('channel', CAST(:channel AS text))
) AS t
WHERE u.id = :user_id
ON CONFLICT (user_id, notification_type, channel) DO UPDATE SET is_enabled = FALSE, updated_at = clock_timestamp()
