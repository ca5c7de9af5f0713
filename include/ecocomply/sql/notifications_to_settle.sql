-- a row is a due notification that goes out by no provider now, with what becomes of it instead and why
WITH due AS (
    SELECT n.id, n.channel::text AS channel, n.status_reason, n.urgency, n.created_at, n.recipient_email,
           n.recipient_phone, n.user_id, u.email, u.phone, u.is_active AND u.deleted_at IS NULL AS is_active,
           (
               u.company_id = n.company_id
               OR EXISTS (
                   SELECT FROM consultant_client_assignments AS a
                   JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
                   WHERE a.consultant_id = u.id
                     AND a.company_id = n.company_id
                     AND a.status::text = 'ACTIVE'
               )
           ) AS looks_after,
           -- what had waited for a week at the adoption is history
           n.scheduled_for < (SELECT a.at FROM adoption AS a) - interval '7 days' AS is_history,
           coalesce(p.is_enabled, TRUE) AS is_wanted, coalesce(p.frequency, 'IMMEDIATE') AS frequency
    FROM notifications AS n
    JOIN users AS u ON u.id = n.user_id
    LEFT JOIN LATERAL (
        -- a channel's own preference goes before that for all channels
        SELECT p.is_enabled, p.frequency_preference::text AS frequency
        FROM notification_preferences AS p
        WHERE p.user_id = n.user_id
          AND p.notification_type = n.notification_type
          AND (p.channel IS NULL OR p.channel::text = n.channel::text)
        ORDER BY p.channel IS NULL
        LIMIT 1
    ) AS p ON TRUE
    WHERE n.status IN ('PENDING', 'QUEUED', 'RETRYING')
      AND n.batch_id IS NULL
      AND n.digest_id IS NULL
      AND n.scheduled_for <= now()
      AND n.scheduled_for <= coalesce(CAST(:limit_as_of AS timestamptz), 'infinity')
      AND n.id = coalesce(CAST(:notification_id AS uuid), n.id)
),
sorted AS (
    SELECT d.*,
           CASE
               WHEN NOT d.is_active OR NOT d.is_wanted THEN 'CANCELLED'
               WHEN NOT d.looks_after THEN 'CANCELLED'
               WHEN d.channel = 'IN_APP' THEN 'DELIVERED'
               WHEN d.is_history THEN 'CANCELLED'
               WHEN d.channel = 'EMAIL' AND coalesce(btrim(d.recipient_email), '') = ''
                   AND coalesce(btrim(d.email), '') = '' THEN 'FAILED'
               WHEN d.channel = 'SMS' AND coalesce(btrim(d.recipient_phone), '') = ''
                   AND coalesce(btrim(d.phone), '') = '' THEN 'FAILED'
               WHEN d.channel = 'PUSH' AND NOT EXISTS (
                   SELECT FROM push_subscriptions AS s WHERE s.user_id = d.user_id AND s.gone_at IS NULL
               ) THEN 'FAILED'
               WHEN d.channel = 'EMAIL' AND d.frequency <> 'IMMEDIATE' AND d.urgency <= 2 THEN 'HELD'
           END AS what
    FROM due AS d
),
said AS (
    SELECT s.*,
           CASE
               WHEN NOT s.is_active THEN 'the user is not active any more'
               WHEN NOT s.looks_after THEN 'the user no longer looks after this company'
               WHEN NOT s.is_wanted THEN 'the user wants none of this type by ' || s.channel
               WHEN s.what = 'DELIVERED' THEN 'shown in the application'
               WHEN s.is_history THEN 'it was old when this platform took over'
               WHEN s.what = 'HELD' AND s.frequency = 'DAILY_DIGEST' THEN 'waits for the daily digest'
               WHEN s.what = 'HELD' THEN 'waits for the weekly digest'
               WHEN s.channel = 'EMAIL' THEN 'the user has no e-mail address'
               WHEN s.channel = 'SMS' THEN 'the user has no phone number'
               ELSE 'the user has no device that takes push messages'
           END AS reason
    FROM sorted AS s
    WHERE s.what IS NOT NULL
)
SELECT s.id, s.what, s.reason
FROM said AS s
WHERE s.what <> 'HELD'
   OR s.status_reason IS DISTINCT FROM s.reason
ORDER BY s.urgency DESC, s.created_at, s.id
