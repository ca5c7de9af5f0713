-- a row is a session's mail of one type, unless the session has one already
INSERT INTO email_log (id, user_id, test_session_id, email_type, status, scheduled_at)
SELECT w.id, s.user_id, s.id, :email_type, 'queued', w.due
FROM unnest(CAST(:ids AS uuid[]), CAST(:sessions AS uuid[]), CAST(:due AS timestamptz[])) AS w (id, session_id, due)
JOIN test_sessions AS s ON s.id = w.session_id
WHERE NOT EXISTS (
    SELECT 1
    FROM email_log AS e
    WHERE e.test_session_id = s.id
      AND e.email_type = :email_type
)
ON CONFLICT DO NOTHING
