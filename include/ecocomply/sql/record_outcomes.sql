-- a row is a claimed message with what the provider said of it; a message that has an outcome keeps it
WITH said AS (
    SELECT *
    FROM jsonb_to_recordset(CAST(:said AS jsonb)) AS s (
        batch_id uuid, position integer, outcome text, reason text, provider_message_id text
    )
),
answered AS (
    UPDATE email_attempts AS a
    -- a word each, and not the text that came: an enum type takes no text
    SET outcome = CASE s.outcome
            WHEN 'accepted' THEN 'accepted'
            WHEN 'rejected' THEN 'rejected'
            WHEN 'deferred' THEN 'deferred'
            WHEN 'unknown' THEN 'unknown'
            ELSE a.outcome
        END,
        reason = s.reason,
        provider_message_id = s.provider_message_id,
        answered_at = clock_timestamp()
    FROM said AS s
    JOIN email_batches AS b ON b.id = s.batch_id
    WHERE a.batch_id = s.batch_id
      AND a.position = s.position
      AND a.outcome IS NULL
    RETURNING a.batch_id, a.position, a.notification_id, a.digest_id, s.outcome, s.reason, s.provider_message_id,
        b.provider
),
told AS (
    UPDATE notifications AS n
    SET status = CASE
            -- what the provider took is out, whatever the row says meanwhile
            WHEN s.outcome = 'accepted' THEN 'SENT'
            WHEN n.status <> 'SENDING' THEN n.status
            WHEN s.outcome = 'unknown' OR (s.outcome = 'rejected' AND n.retry_count >= 2) THEN 'FAILED'
            WHEN s.outcome = 'rejected' OR (s.outcome = 'deferred' AND n.retry_count > 0) THEN 'RETRYING'
            WHEN s.outcome = 'deferred' THEN 'PENDING'
            ELSE n.status
        END,
        delivery_status = CASE
            WHEN s.outcome = 'accepted' THEN 'SENT'
            WHEN s.outcome = 'unknown' OR (s.outcome = 'rejected' AND n.retry_count >= 2) THEN 'FAILED'
            ELSE n.delivery_status
        END,
        delivery_provider = s.provider,
        delivery_provider_id = coalesce(s.provider_message_id, n.delivery_provider_id),
        delivery_error = CASE WHEN s.outcome <> 'accepted' THEN s.reason END,
        status_reason = CASE s.outcome
            WHEN 'accepted' THEN 'taken by ' || s.provider
            WHEN 'rejected' THEN CASE
                WHEN n.retry_count >= 2 THEN 'refused at the third attempt: ' || s.reason
                ELSE 'refused at attempt ' || n.retry_count + 1 || ' of 3: ' || s.reason
            END
            WHEN 'unknown' THEN 'nobody knows whether it arrived: ' || s.reason
            ELSE s.provider || ' is out of reach: ' || s.reason
        END,
        retry_count = n.retry_count + CASE WHEN s.outcome = 'rejected' THEN 1 ELSE 0 END,
        next_attempt_at = CASE
            WHEN s.outcome <> 'rejected' OR n.retry_count >= 2 THEN NULL
            ELSE clock_timestamp() + CASE WHEN n.retry_count = 0 THEN interval '1 minute' ELSE interval '5 minutes' END
        END,
        outcome_unknown = n.outcome_unknown OR s.outcome = 'unknown',
        sent_at = CASE WHEN s.outcome = 'accepted' THEN clock_timestamp() ELSE n.sent_at END,
        batch_id = CASE WHEN s.outcome IN ('accepted', 'unanswered') THEN n.batch_id END,
        updated_at = clock_timestamp()
    FROM answered AS s
    WHERE n.id = s.notification_id
    RETURNING n.id, n.status::text AS status
),
digest AS (
    UPDATE digests AS d
    SET status = CASE
            WHEN s.outcome = 'accepted' THEN 'sent'
            WHEN d.status NOT IN ('queued', 'failed') THEN d.status
            WHEN s.outcome = 'rejected' AND d.retry_count >= 2 THEN 'abandoned'
            WHEN s.outcome IN ('rejected', 'unknown') THEN 'failed'
            ELSE d.status
        END,
        retry_count = d.retry_count + CASE WHEN s.outcome = 'rejected' THEN 1 ELSE 0 END,
        permanent = d.permanent OR s.outcome = 'unknown',
        outcome_unknown = d.outcome_unknown OR s.outcome = 'unknown',
        sent_at = CASE WHEN s.outcome = 'accepted' THEN clock_timestamp() ELSE d.sent_at END,
        provider_message_id = coalesce(s.provider_message_id, d.provider_message_id),
        last_error = CASE WHEN s.outcome <> 'accepted' THEN s.reason END,
        batch_id = CASE WHEN s.outcome IN ('accepted', 'unanswered') THEN d.batch_id END,
        updated_at = clock_timestamp()
    FROM answered AS s
    WHERE d.id = s.digest_id
    RETURNING d.id, d.frequency::text AS frequency, d.status::text AS status, s.outcome, s.provider, s.reason
),
digested AS (
    UPDATE notifications AS n
    SET status = CASE WHEN d.outcome = 'accepted' THEN 'DELIVERED' ELSE n.status END,
        delivery_status = CASE WHEN d.outcome = 'accepted' THEN 'DELIVERED' ELSE n.delivery_status END,
        delivery_provider = CASE WHEN d.outcome = 'accepted' THEN d.provider ELSE n.delivery_provider END,
        status_reason = CASE d.outcome
            WHEN 'accepted' THEN 'stands in the ' || lower(d.frequency) || ' digest'
            WHEN 'rejected' THEN 'the ' || lower(d.frequency) || ' digest was refused: ' || d.reason
            ELSE 'nobody knows whether the ' || lower(d.frequency) || ' digest arrived: ' || d.reason
        END,
        sent_at = CASE WHEN d.outcome = 'accepted' THEN clock_timestamp() ELSE n.sent_at END,
        delivered_at = CASE WHEN d.outcome = 'accepted' THEN clock_timestamp() ELSE n.delivered_at END,
        -- a refused digest has told nobody: the next one takes its rows
        digest_id = CASE WHEN d.outcome <> 'rejected' THEN n.digest_id END,
        updated_at = clock_timestamp()
    FROM digest AS d
    WHERE n.digest_id = d.id
      AND n.status IN ('PENDING', 'QUEUED')
      AND d.outcome IN ('accepted', 'rejected', 'unknown')
)
SELECT s.batch_id::text,
       s.position,
       CASE
           WHEN s.outcome = 'rejected' AND (t.status = 'FAILED' OR d.status = 'abandoned') THEN 'abandoned'
           ELSE s.outcome
       END AS outcome
FROM answered AS s
LEFT JOIN told AS t ON t.id = s.notification_id
LEFT JOIN digest AS d ON d.id = s.digest_id
