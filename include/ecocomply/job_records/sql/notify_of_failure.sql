-- a row is the notification by which a user hears of a job that has failed for good
INSERT INTO notifications (
    user_id, company_id, recipient_email, notification_type, channel, priority, subject, body_text,
    entity_type, entity_id, metadata, variables, dedupe_key
)
SELECT u.id, CAST(:company_id AS uuid), u.email, 'SYSTEM_ALERT', 'EMAIL', 'CRITICAL', :subject, :body,
       'background_job', CAST(:job_id AS uuid), CAST(:details AS jsonb), CAST(:details AS jsonb),
       'SYSTEM_ALERT/' || CAST(:letter_id AS uuid) || '/' || u.id || '/EMAIL'
FROM users AS u
WHERE u.id = ANY (CAST(:user_ids AS uuid[]))
ORDER BY u.id
ON CONFLICT DO NOTHING
RETURNING user_id
