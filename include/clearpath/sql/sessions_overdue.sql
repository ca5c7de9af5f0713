-- a row is a session that is past its grace period and has no result
SELECT s.id
FROM test_sessions AS s
WHERE s.status IN ('active', 'retrieval_due', 'mailed', 'results_pending')
  AND s.expected_completion_date < :last_day
  AND NOT EXISTS (SELECT 1 FROM results AS r WHERE r.test_session_id = s.id)
ORDER BY s.id
