-- one row: whether a session's internal alert was not enqueued before
SELECT enqueue_signup_alert(
    CAST(:session_id AS text), CAST(:email AS text), CAST(:name AS text), CAST(:company_name AS text)
)
