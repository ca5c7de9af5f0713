-- a row is a claimed message with what the provider said of it; a message that has an outcome keeps it
WITH said AS (
    SELECT *
    FROM jsonb_to_recordset(CAST(:said AS jsonb)) AS s (
        batch_id uuid, position integer, outcome text, reason text, provider_message_id text
    )
),
answered AS (
    UPDATE notification_attempts AS a
    SET outcome = nullif(s.outcome, 'unanswered'),
        reason = s.reason,
        provider_message_id = s.provider_message_id,
        answered_at = clock_timestamp()
    FROM said AS s
    WHERE a.batch_id = s.batch_id
      AND a.position = s.position
      AND a.outcome IS NULL
    RETURNING a.batch_id, a.position, a.notification_id, s.outcome, s.reason, s.provider_message_id
),
outbox AS (
    UPDATE notification_outbox AS o
    SET status = CASE
            -- what the provider took is out, whatever the row says meanwhile
            WHEN n.outcome = 'accepted' THEN 'sent'
            WHEN n.outcome = 'rejected' THEN 'failed'
            WHEN n.outcome = 'unknown' THEN 'unknown'
            ELSE o.status
        END,
        finished_at = CASE
            WHEN n.outcome IN ('accepted', 'rejected', 'unknown') THEN clock_timestamp() ELSE o.finished_at
        END,
        provider_message_id = coalesce(n.provider_message_id, o.provider_message_id),
        error = CASE WHEN n.outcome = 'accepted' THEN NULL ELSE n.reason END,
        -- what surely did not go out may go another way
        sink = CASE WHEN n.outcome <> 'deferred' THEN o.sink END,
        batch_id = CASE WHEN n.outcome <> 'deferred' THEN o.batch_id END
    FROM answered AS n
    WHERE o.id = n.notification_id
)
SELECT n.batch_id::text, n.position, n.outcome
FROM answered AS n
