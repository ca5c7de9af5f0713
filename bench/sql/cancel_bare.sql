-- a row is a queued mail of a session that has expired: the second of the two bare updates
UPDATE email_log AS e
SET status = 'cancelled',
    status_reason = 'session expired on ' || CAST(:as_of_day AS date),
    updated_at = clock_timestamp()
FROM test_sessions AS s
WHERE s.id = e.test_session_id
  AND s.status = 'expired'
  AND s.expired_at = now()
  AND e.status = 'queued'
