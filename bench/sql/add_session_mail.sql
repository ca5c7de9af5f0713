-- a row is a mail of a session's sequence: sent, or queued where the session is past its grace period
INSERT INTO email_log (id, user_id, test_session_id, email_type, status, scheduled_at, sent_at)
SELECT md5('bench mail ' || email_type || s.id)::uuid,
       s.user_id,
       s.id,
       email_type,
       CASE WHEN overdue THEN 'queued' ELSE 'sent' END,
       s.activated_at + interval '30 days',
       CASE WHEN NOT overdue THEN s.activated_at + interval '30 days' END
FROM (
    SELECT id, user_id, activated_at,
           status IN ('active', 'retrieval_due', 'mailed', 'results_pending')
               AND expected_completion_date < CAST(:last_day AS date) AS overdue
    FROM test_sessions
) AS s
CROSS JOIN (VALUES ('day_30'), ('day_88')) AS kinds (email_type)
WHERE overdue OR email_type = 'day_30'
