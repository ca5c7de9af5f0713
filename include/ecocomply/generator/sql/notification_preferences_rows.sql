-- a row is a person who wants a digest of reminders, or none at all
INSERT INTO notification_preferences (
    id, user_id, notification_type, channel, is_enabled, frequency_preference
)
SELECT pg_temp.make_id('preference', n), pg_temp.make_id('user', n), 'EVIDENCE_REMINDER', 'EMAIL', n % 7 <> 0,
       -- every sixth person has a mail that waits: some of these want a digest, some do not
       (ARRAY['IMMEDIATE', 'DAILY_DIGEST', 'WEEKLY_DIGEST'])[1 + n / 6 % 3]
FROM generate_series(1, 9 * pg_temp.companies()) AS n
