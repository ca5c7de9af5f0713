-- a row is a notification that is to go out by a channel now, most urgent first, then oldest, with its recipient
SELECT n.id, n.user_id, n.notification_type, n.subject, n.body_text, n.body_html, n.action_url,
       coalesce(nullif(btrim(n.recipient_email), ''), btrim(u.email), '') AS email,
       coalesce(nullif(btrim(n.recipient_phone), ''), btrim(u.phone), '') AS phone,
       CASE
           WHEN n.channel = 'PUSH' THEN (
               SELECT jsonb_agg(
                   jsonb_build_object('endpoint', s.endpoint, 'p256dh', s.p256dh, 'auth', s.auth)
                   ORDER BY s.created_at, s.endpoint
               )
               FROM push_subscriptions AS s
               WHERE s.user_id = n.user_id
                 AND s.gone_at IS NULL
           )
       END AS subscriptions,
       -- a link holds from the day of the sending, whatever as_of narrows
       CAST(now() AT TIME ZONE 'UTC' AS date) AS today
FROM notifications AS n
JOIN users AS u ON u.id = n.user_id
LEFT JOIN LATERAL (
    SELECT p.is_enabled, p.frequency_preference::text AS frequency
    FROM notification_preferences AS p
    WHERE p.user_id = n.user_id
      AND p.notification_type = n.notification_type
      AND (p.channel IS NULL OR p.channel::text = n.channel::text)
    ORDER BY p.channel IS NULL
    LIMIT 1
) AS p ON TRUE
WHERE n.status IN ('PENDING', 'QUEUED', 'RETRYING')
  AND n.channel::text = :channel
  AND n.batch_id IS NULL
  AND n.digest_id IS NULL
  AND n.scheduled_for <= now()
  AND coalesce(n.next_attempt_at, '-infinity') <= now()
  AND n.scheduled_for <= coalesce(CAST(:limit_as_of AS timestamptz), 'infinity')
  AND n.id = coalesce(CAST(:notification_id AS uuid), n.id)
  AND u.is_active
  AND u.deleted_at IS NULL
  AND (
      u.company_id = n.company_id
      OR EXISTS (
          SELECT FROM consultant_client_assignments AS a
          JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
          WHERE a.consultant_id = u.id
            AND a.company_id = n.company_id
            AND a.status::text = 'ACTIVE'
      )
  )
  AND coalesce(p.is_enabled, TRUE)
  AND (n.urgency > 2 OR n.channel::text <> 'EMAIL' OR coalesce(p.frequency, 'IMMEDIATE') = 'IMMEDIATE')
ORDER BY n.urgency DESC, n.created_at, n.id
LIMIT :limit
