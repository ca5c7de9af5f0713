-- What reached nobody is shown in the application, unless it is there already: by its key, or, where it has none, as
-- the same words of the same minute.
CREATE OR REPLACE FUNCTION notifications_copied() RETURNS trigger LANGUAGE plpgsql AS $copied$
BEGIN
    INSERT INTO notifications (
        user_id, company_id, site_id, recipient_email, recipient_phone, notification_type, channel, priority, subject,
        body_text, variables, is_escalation, escalation_level, escalation_state, entity_type, entity_id, obligation_id,
        evidence_id, action_url, metadata, dedupe_key, status_reason
    )
    SELECT NEW.user_id, NEW.company_id, NEW.site_id, NEW.recipient_email, NEW.recipient_phone, NEW.notification_type,
           'IN_APP', NEW.priority, NEW.subject, NEW.body_text, NEW.variables, NEW.is_escalation, NEW.escalation_level,
           NEW.escalation_state, NEW.entity_type, NEW.entity_id, NEW.obligation_id, NEW.evidence_id, NEW.action_url,
           NEW.metadata,
           CASE
               WHEN NEW.dedupe_key LIKE '%/' || NEW.channel::text
                   THEN left(NEW.dedupe_key, -length(NEW.channel::text)) || 'IN_APP'
               ELSE NEW.id || '/IN_APP'
           END,
           'shown here, since the ' || NEW.channel::text || ' failed'
    WHERE NEW.dedupe_key LIKE '%/' || NEW.channel::text
       OR NOT EXISTS (
           SELECT FROM notifications AS o
           WHERE o.user_id = NEW.user_id
             AND o.channel = 'IN_APP'
             AND o.notification_type = NEW.notification_type
             AND o.subject = NEW.subject
             AND o.created_at BETWEEN NEW.created_at - interval '1 minute' AND NEW.created_at + interval '1 minute'
       )
    ON CONFLICT (dedupe_key) DO NOTHING;
    RETURN NULL;
END
$copied$
