-- a row is a notification as long as those that are told, with nothing looked up
INSERT INTO notifications (
    user_id, company_id, site_id, recipient_email, notification_type, channel, priority, subject, body_text, body_html,
    variables, entity_type, entity_id, action_url, metadata, dedupe_key
)
SELECT u.id, u.company_id, CAST('00000000-0000-0000-0000-000000000002' AS uuid), u.email, 'EVIDENCE_REMINDER',
       'EMAIL', 'HIGH', 'Evidence Required: Stack test ' || n,
       '“Stack test ' || n || '” at Leeds is due in 2 days, on 31 January 2027, and there is no evidence for it yet.',
       '<p>“Stack test ' || n
           || '” at Leeds is due in 2 days, on 31 January 2027, and there is no evidence for it yet.</p>',
       jsonb_build_object('obligation', 'Stack test ' || n, 'site', 'Leeds', 'due_date', '2027-01-31'),
       'obligation', CAST(lpad(to_hex(1000 + n), 32, '0') AS uuid),
       'https://app.ecocomply.example/sites/00000000-0000-0000-0000-000000000002/obligations/' || n, '{}',
       'evidence_reminder/obligation/' || lpad(to_hex(1000 + n), 32, '0') || '/2027-01-31//' || u.id || '/EMAIL'
FROM generate_series(0, CAST(:told AS integer) - 1) AS n
JOIN users AS u ON u.id = CAST(lpad(to_hex(100000 + n % CAST(:people AS integer)), 32, '0') AS uuid)
