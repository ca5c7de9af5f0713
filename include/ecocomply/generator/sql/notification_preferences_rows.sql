-- a row is a person who wants a digest of reminders, or none at all
INSERT INTO notification_preferences (
    id, user_id, notification_type, channel, is_enabled, frequency_preference
)
SELECT pg_temp.make_id('preference', n), pg_temp.make_id('user', n), 'EVIDENCE_REMINDER', 'EMAIL', n % 7 <> 0,
       pg_temp.pick('preference', n, ARRAY['IMMEDIATE', 'DAILY_DIGEST', 'WEEKLY_DIGEST'])
FROM generate_series(1, 9 * pg_temp.companies(), 2) AS n
