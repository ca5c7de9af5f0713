-- a row is a due mail whose test session has ended
SELECT e.id
FROM email_log AS e
JOIN test_sessions AS s ON s.id = e.test_session_id
WHERE (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
  AND e.batch_id IS NULL
  AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
  AND e.email_type::text = ANY (CAST(:sequenced AS text[]))
  AND s.status IN ('cancelled', 'expired', 'complete')
ORDER BY e.id
