-- a row is a notification with all its reason is made of, the latest first
SELECT n.id, n.user_id, n.company_id, n.site_id, n.notification_type, n.channel::text AS channel,
       n.priority::text AS priority, n.subject, n.body_text, n.status::text AS status,
       n.delivery_status::text AS delivery_status, n.delivery_provider, n.delivery_provider_id, n.delivery_error,
       n.is_escalation, n.escalation_level, n.entity_type, n.entity_id, n.action_url, n.scheduled_for, n.retry_count,
       n.next_attempt_at, n.outcome_unknown, n.sent_at, n.delivered_at, n.read_at, n.created_at, n.status_reason,
       c.name AS company_name, s.name AS site_name, u.full_name,
       coalesce(nullif(btrim(n.recipient_email), ''), nullif(btrim(u.email), '')) AS email,
       coalesce(nullif(btrim(n.recipient_phone), ''), nullif(btrim(u.phone), '')) AS phone,
       b.run_id AS claimed_by_run, b.claimed_at,
       d.id AS digest_id, d.frequency::text AS digest_frequency, d.period_start AS digest_period_start,
       d.status::text AS digest_status, d.sent_at AS digest_sent_at, e.run_id AS digest_claimed_by,
       d.outcome_unknown AS digest_outcome_unknown,
       copy.id AS copy_id, origin.id AS origin_id, origin.channel AS origin_channel
FROM notifications AS n
LEFT JOIN companies AS c ON c.id = n.company_id
LEFT JOIN sites AS s ON s.id = n.site_id
LEFT JOIN users AS u ON u.id = n.user_id
LEFT JOIN email_batches AS b ON b.id = n.batch_id
LEFT JOIN digests AS d ON d.id = n.digest_id
LEFT JOIN email_batches AS e ON e.id = d.batch_id
LEFT JOIN LATERAL (
    -- the trigger notifications_copied names it so
    SELECT o.id
    FROM notifications AS o
    WHERE n.status = 'FAILED'
      AND n.channel <> 'IN_APP'
      AND o.channel = 'IN_APP'
      AND o.dedupe_key = ANY (ARRAY[
          n.id || '/IN_APP',
          CASE
              WHEN n.dedupe_key LIKE '%/' || n.channel::text
                  THEN left(n.dedupe_key, -length(n.channel::text)) || 'IN_APP'
          END
      ])
    ORDER BY o.created_at, o.id
    LIMIT 1
) AS copy ON TRUE
LEFT JOIN LATERAL (
    -- what was made along with it is no copy of it: a copy comes later
    SELECT o.id, o.channel::text AS channel
    FROM notifications AS o
    WHERE n.channel = 'IN_APP'
      AND n.dedupe_key LIKE '%/IN_APP'
      AND o.channel <> 'IN_APP'
      AND o.status = 'FAILED'
      AND o.created_at < n.created_at
      AND (
          o.dedupe_key = ANY (ARRAY[
              left(n.dedupe_key, -6) || 'EMAIL', left(n.dedupe_key, -6) || 'SMS', left(n.dedupe_key, -6) || 'PUSH'
          ])
          OR o.id = CASE
              WHEN n.dedupe_key ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/IN_APP$'
                  THEN CAST(left(n.dedupe_key, 36) AS uuid)
          END
      )
    ORDER BY o.created_at, o.id
    LIMIT 1
) AS origin ON TRUE
WHERE n.id = ANY (CAST(:ids AS uuid[]))
ORDER BY n.created_at DESC, n.id DESC
