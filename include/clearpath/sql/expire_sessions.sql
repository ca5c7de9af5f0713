-- one row with how many sessions were expired, and how many of their mails were cancelled
WITH due AS (
    SELECT s.id
    FROM test_sessions AS s
    WHERE s.id = ANY (CAST(:ids AS uuid[]))
      AND s.status IN ('active', 'retrieval_due', 'mailed', 'results_pending')
      AND s.expected_completion_date < :last_day
      AND NOT EXISTS (SELECT 1 FROM results AS r WHERE r.test_session_id = s.id)
    ORDER BY s.id
    FOR UPDATE
),
expired AS (
    UPDATE test_sessions AS s
    SET status = 'expired',
        expired_at = clock_timestamp(),
        updated_at = clock_timestamp()
    FROM due
    WHERE s.id = due.id
    RETURNING s.id
),
cancelled AS (
    UPDATE email_log AS e
    SET status = 'cancelled',
        status_reason = 'session expired on ' || CAST(:as_of_day AS date),
        updated_at = clock_timestamp()
    FROM expired
    WHERE e.test_session_id = expired.id
      AND (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
    RETURNING e.id
)
SELECT (SELECT count(*) FROM expired) AS sessions,
       (SELECT count(*) FROM cancelled) AS mails
