-- a row is a mail that is cancelled because its session has ended, with the reason in words
WITH due AS (
    SELECT e.id, s.status::text AS session_status
    FROM email_log AS e
    JOIN test_sessions AS s ON s.id = e.test_session_id
    WHERE e.id = ANY (CAST(:ids AS uuid[]))
      AND (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
      AND e.batch_id IS NULL
      AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
      AND e.email_type::text = ANY (CAST(:sequenced AS text[]))
      AND s.status IN ('cancelled', 'expired', 'complete')
    ORDER BY e.id
    FOR UPDATE OF e
)
UPDATE email_log AS e
SET status = 'cancelled',
    status_reason = 'session ' || due.session_status,
    updated_at = clock_timestamp()
FROM due
WHERE e.id = due.id
RETURNING e.id, e.status_reason
