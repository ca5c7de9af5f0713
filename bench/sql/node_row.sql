-- one row with a mail, its session and customer, and whether the same mail was sent before
SELECT e.email_type, e.test_session_id, s.status, s.address, s.kit_serial_number, s.activated_at,
       s.expected_completion_date, u.email, u.full_name,
       EXISTS (
           SELECT 1
           FROM email_log AS o
           WHERE o.user_id = e.user_id
             AND o.test_session_id = e.test_session_id
             AND o.email_type = e.email_type
             AND o.status = 'sent'
       ) AS sent_before
FROM email_log AS e
JOIN users AS u ON u.id = e.user_id
LEFT JOIN test_sessions AS s ON s.id = e.test_session_id
WHERE e.id = :id
  AND (s.id IS NULL OR s.status NOT IN ('cancelled', 'expired'))
