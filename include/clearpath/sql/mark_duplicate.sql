-- a row is a mail that is marked as the second copy of another, with the reason in words
WITH due AS (
    SELECT e.id, twin.sent
    FROM email_log AS e
    -- looked for again: the first copy may have been cancelled meanwhile
    CROSS JOIN LATERAL (
        SELECT bool_or(o.status = 'sent') AS sent
        FROM email_log AS o
        WHERE o.user_id = e.user_id
          AND o.email_type = e.email_type
          AND o.test_session_id IS NOT DISTINCT FROM e.test_session_id
          AND o.id <> e.id
          AND (
              o.status = 'sent'
              OR o.batch_id IS NOT NULL
              OR o.outcome_unknown
              OR (
                  (o.status = 'queued' OR (o.status = 'failed' AND o.retry_count < 3 AND NOT o.permanent))
                  AND (o.scheduled_at, o.id) < (e.scheduled_at, e.id)
              )
          )
    ) AS twin
    WHERE e.id = ANY (CAST(:ids AS uuid[]))
      AND (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
      AND e.batch_id IS NULL
      AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
      AND (e.test_session_id IS NOT NULL OR e.email_type::text = ANY (CAST(:sequenced AS text[])))
      AND twin.sent IS NOT NULL
    ORDER BY e.id
    FOR UPDATE OF e
)
UPDATE email_log AS e
SET status = 'duplicate',
    status_reason = CASE
        WHEN due.sent THEN 'the same mail was sent before'
        ELSE 'another mail of this kind is on its way'
    END,
    updated_at = clock_timestamp()
FROM due
WHERE e.id = due.id
RETURNING e.id, e.status_reason
