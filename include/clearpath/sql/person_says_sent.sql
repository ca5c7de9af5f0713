-- the row is a mail of which a person has learnt that the provider has it: it is out, and never goes out again
UPDATE email_log AS e
SET status = 'sent',
    sent_at = coalesce(
        e.sent_at,
        (SELECT max(a.begun_at) FROM email_attempts AS a WHERE a.email_id = e.id),
        clock_timestamp()
    ),
    permanent = false,
    outcome_unknown = false,
    status_reason = NULL,
    last_error = NULL,
    updated_at = clock_timestamp()
WHERE e.id = :mail_id
  AND e.outcome_unknown
  AND e.status <> 'sent'
  AND e.batch_id IS NULL
RETURNING e.id, e.status, e.sent_at
