-- a row is the next notification, with its user and what that user wants, as the specification's job looks it up
SELECT n.id, n.subject, n.body_text, n.body_html, u.email
FROM notifications AS n
JOIN users AS u ON u.id = n.user_id
LEFT JOIN notification_preferences AS p
    ON p.user_id = n.user_id
    AND p.notification_type = n.notification_type
WHERE n.status = 'PENDING'
  AND coalesce(p.is_enabled, TRUE)
ORDER BY n.urgency DESC, n.created_at, n.id
LIMIT 1
