UPDATE compliance_clocks_universal SET reminders_sent = ARRAY(
    SELECT day FROM unnest(reminder_days) AS day WHERE target_date - CAST(:today AS date) <= day
)
