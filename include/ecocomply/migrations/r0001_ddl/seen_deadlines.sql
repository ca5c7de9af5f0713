UPDATE deadlines SET past_at_adoption = true, breach_notification_sent = true
WHERE due_date < :today AND status::text NOT IN ('COMPLETED', 'NOT_APPLICABLE')
