-- one row: how many of a session's reminders were not enqueued before
SELECT enqueue_signup_reminders(CAST(:session_id AS text), CAST(:name AS text))
