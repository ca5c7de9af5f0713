-- a row is a mail that is due, of five priorities in turn
INSERT INTO notifications (
    user_id, company_id, recipient_email, notification_type, channel, priority, subject, body_text, body_html,
    action_url, scheduled_for, created_at, dedupe_key
)
SELECT u.id, u.company_id, u.email, 'EVIDENCE_REMINDER', 'EMAIL',
       (ARRAY['LOW', 'NORMAL', 'HIGH', 'CRITICAL', 'URGENT'])[1 + n % 5],
       'Evidence Required: Stack test ' || n,
       '“Stack test ' || n || '” at Leeds is due in 2 days, and there is no evidence for it yet.',
       '<p>“Stack test ' || n || '” at Leeds is due in 2 days, and there is no evidence for it yet.</p>',
       'https://app.ecocomply.example/obligations/' || n,
       now() - interval '1 hour', now() - interval '1 hour' + n * interval '1 millisecond', 'bench/' || n
FROM generate_series(1, CAST(:mails AS integer)) AS n
JOIN users AS u ON u.id = CAST(lpad(to_hex(100000 + n % CAST(:people AS integer)), 32, '0') AS uuid)
