-- a row is one of ten things that wait for the digest of a person who wants one a day
INSERT INTO notifications (
    user_id, company_id, site_id, recipient_email, notification_type, channel, priority, subject, body_text, status,
    entity_type, entity_id, obligation_id, action_url, dedupe_key, scheduled_for, created_at
)
SELECT u.id, u.company_id, o.site_id, u.email, 'EVIDENCE_REMINDER', 'EMAIL', 'NORMAL',
       'Evidence Required: ' || o.summary, 'There is no evidence for “' || o.summary || '” yet.', 'PENDING',
       'obligation', o.id, o.id, 'https://app.ecocomply.example/sites/' || o.site_id || '/obligations/' || o.id,
       'waits for a digest/' || o.id || '/' || u.id || '/' || o.place, CAST(:today AS date), CAST(:today AS date)
FROM notification_preferences AS p
JOIN users AS u ON u.id = p.user_id AND u.is_active
CROSS JOIN LATERAL (
    SELECT o.id, o.site_id, o.summary, row_number() OVER (ORDER BY o.id) AS place
    FROM obligations AS o
    WHERE o.company_id = u.company_id
    ORDER BY o.id
    LIMIT 10
) AS o
WHERE p.is_enabled
  AND p.frequency_preference = 'DAILY_DIGEST'
