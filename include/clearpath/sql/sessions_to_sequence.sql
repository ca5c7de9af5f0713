-- a row is an activated session with the dates that its mail follows from
SELECT id, activated_at, expected_completion_date
FROM test_sessions
WHERE id = ANY (CAST(:ids AS uuid[]))
  AND activated_at IS NOT NULL
ORDER BY id
