-- a row is a due mail with what its template needs, oldest first
SELECT e.id, e.email_type, e.test_session_id, u.email AS recipient, u.full_name,
       s.address, s.kit_serial_number, s.activated_at, s.expected_completion_date, now() AS now
FROM email_log AS e
JOIN users AS u ON u.id = e.user_id
LEFT JOIN test_sessions AS s ON s.id = e.test_session_id
WHERE (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
  AND e.batch_id IS NULL
  AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
  AND coalesce(e.next_attempt_at, '-infinity') <= now()
  AND (s.id IS NULL
       OR s.status NOT IN ('cancelled', 'expired', 'complete')
       OR e.email_type::text <> ALL (CAST(:sequenced AS text[])))
ORDER BY e.scheduled_at, e.id
LIMIT :limit
