-- a row is what three of a company's people were told of an obligation; the latest waits
INSERT INTO notifications (
    id, user_id, company_id, site_id, recipient_email, notification_type, channel, priority, subject, body_text, status,
    delivery_status, entity_type, entity_id, obligation_id, action_url, dedupe_key, sent_at, scheduled_for,
    created_at, updated_at
)
SELECT pg_temp.make_id('notification', n), u.id, u.company_id, o.site_id, u.email,
       'EVIDENCE_REMINDER', CASE WHEN n % 2 = 0 THEN 'EMAIL' ELSE 'IN_APP' END,
       CASE WHEN n % 5 = 0 THEN 'HIGH' ELSE 'NORMAL' END,
       'Evidence Required: ' || o.summary, 'Evidence is required for an obligation due on ' || o.deadline_date,
       CASE WHEN n % 3 = 0 THEN 'PENDING' ELSE 'SENT' END, CASE WHEN n % 3 > 0 THEN 'SENT' END,
       'obligation', o.id, o.id, 'https://app.ecocomply.example/sites/' || o.site_id || '/obligations/' || o.id,
       'generated/' || pg_temp.make_id('notification', n), CASE WHEN n % 3 > 0 THEN told.sent END, told.sent,
       told.sent, told.sent
FROM generate_series(1, 9 * pg_temp.companies()) AS n
JOIN users AS u ON u.id = pg_temp.make_id('user', n) AND u.is_active
JOIN obligations AS o ON o.id = pg_temp.make_id('obligation', 3 * ((n + 8) / 9) - n % 3)
CROSS JOIN LATERAL (SELECT pg_temp.at(pg_temp.today() - 1 - pg_temp.roll('told', n, 30), 9) AS sent) AS told
