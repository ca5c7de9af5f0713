-- a row is the session in the middle of those that are to expire, as the job sorts them
UPDATE test_sessions
SET clearpath_order_id = 'BAD'
WHERE id = (
    SELECT id
    FROM test_sessions
    WHERE status IN ('active', 'retrieval_due', 'mailed', 'results_pending')
      AND expected_completion_date < :last_day
    ORDER BY id
    OFFSET CAST(:overdue AS integer) / 2
    LIMIT 1
)
