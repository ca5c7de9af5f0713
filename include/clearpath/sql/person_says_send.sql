-- the row is a mail that nobody has, and whose fault a person has mended: the next run takes it, with all its tries
UPDATE email_log AS e
SET status = 'queued',
    retry_count = 0,
    permanent = false,
    outcome_unknown = false,
    next_attempt_at = NULL,
    status_reason = NULL,
    last_error = NULL,
    updated_at = clock_timestamp()
WHERE e.id = :mail_id
  AND (e.outcome_unknown OR e.permanent OR e.status = 'abandoned' OR e.retry_count >= 3)
  AND e.status IN ('queued', 'failed', 'abandoned')
  AND e.batch_id IS NULL
RETURNING e.id, e.status, e.scheduled_at
