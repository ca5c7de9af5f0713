-- a row is a claimed digest with what the provider said of it; a message that has an outcome keeps it
WITH said AS (
    SELECT *
    FROM jsonb_to_recordset(CAST(:said AS jsonb)) AS s (
        batch_id uuid, position integer, outcome text, reason text, provider_message_id text
    )
),
answered AS (
    UPDATE email_attempts AS a
    SET outcome = nullif(s.outcome, 'unanswered'),
        reason = s.reason,
        provider_message_id = s.provider_message_id,
        answered_at = clock_timestamp()
    FROM said AS s
    WHERE a.batch_id = s.batch_id
      AND a.position = s.position
      AND a.outcome IS NULL
    RETURNING a.batch_id, a.position, a.digest_id, s.outcome, s.reason, s.provider_message_id
),
mail AS (
    UPDATE digests AS d
    SET status = CASE
            -- what the provider took is out, whatever the row says meanwhile
            WHEN n.outcome = 'accepted' THEN 'sent'
            WHEN d.status NOT IN ('queued', 'failed') THEN d.status
            WHEN n.outcome = 'rejected' AND d.retry_count + 1 >= 3 THEN 'abandoned'
            WHEN n.outcome IN ('rejected', 'unknown') THEN 'failed'
            ELSE d.status
        END,
        sent_at = CASE WHEN n.outcome = 'accepted' THEN clock_timestamp() ELSE d.sent_at END,
        provider_message_id = coalesce(n.provider_message_id, d.provider_message_id),
        retry_count = d.retry_count + CASE WHEN n.outcome = 'rejected' THEN 1 ELSE 0 END,
        next_attempt_at = CASE
            WHEN n.outcome = 'rejected' THEN clock_timestamp() + interval '15 minutes'
        END,
        permanent = d.permanent OR n.outcome = 'unknown',
        outcome_unknown = d.outcome_unknown OR n.outcome = 'unknown',
        last_error = CASE WHEN n.outcome = 'accepted' THEN NULL ELSE n.reason END,
        batch_id = CASE WHEN n.outcome IN ('accepted', 'unanswered') THEN d.batch_id END,
        updated_at = clock_timestamp()
    FROM answered AS n
    WHERE d.id = n.digest_id
    RETURNING d.id, d.status
)
SELECT n.batch_id::text,
       n.position,
       CASE WHEN m.status = 'abandoned' THEN 'abandoned' ELSE n.outcome END AS outcome
FROM answered AS n
LEFT JOIN mail AS m ON m.id = n.digest_id
