-- a row is a claimed message with what the provider said of it; a message that has an outcome keeps it
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
    RETURNING a.batch_id, a.position, a.email_id, a.cnrpp_alert_id, s.outcome, s.reason, s.provider_message_id
),
mail AS (
    UPDATE email_log AS e
    SET status = CASE
            -- what the provider took is out, whatever the row says meanwhile
            WHEN n.outcome = 'accepted' THEN 'sent'
            WHEN e.status NOT IN ('queued', 'failed') THEN e.status
            WHEN n.outcome = 'rejected' AND e.retry_count + 1 >= 3 THEN 'abandoned'
            WHEN n.outcome IN ('rejected', 'unknown') THEN 'failed'
            ELSE e.status
        END,
        sent_at = CASE WHEN n.outcome = 'accepted' THEN clock_timestamp() ELSE e.sent_at END,
        provider_message_id = coalesce(n.provider_message_id, e.provider_message_id),
        retry_count = e.retry_count + CASE WHEN n.outcome = 'rejected' THEN 1 ELSE 0 END,
        next_attempt_at = CASE
            WHEN n.outcome = 'rejected' THEN clock_timestamp() + interval '15 minutes'
        END,
        permanent = e.permanent OR n.outcome = 'unknown',
        outcome_unknown = e.outcome_unknown OR n.outcome = 'unknown',
        last_error = CASE WHEN n.outcome = 'accepted' THEN NULL ELSE n.reason END,
        status_reason = CASE WHEN n.outcome = 'accepted' THEN NULL ELSE e.status_reason END,
        batch_id = CASE WHEN n.outcome IN ('accepted', 'unanswered') THEN e.batch_id END,
        updated_at = clock_timestamp()
    FROM answered AS n
    WHERE e.id = n.email_id
    RETURNING e.id, e.status::text AS status
),
alerts AS (
    UPDATE cnrpp_alerts AS c
    SET sent_at = CASE WHEN n.outcome = 'accepted' THEN clock_timestamp() ELSE c.sent_at END,
        provider_message_id = coalesce(n.provider_message_id, c.provider_message_id),
        outcome_unknown = c.outcome_unknown OR n.outcome = 'unknown',
        last_error = CASE WHEN n.outcome = 'accepted' THEN NULL ELSE n.reason END,
        batch_id = CASE WHEN n.outcome IN ('accepted', 'unanswered') THEN c.batch_id END
    FROM answered AS n
    WHERE c.id = n.cnrpp_alert_id
    RETURNING c.id, c.contractor_id, c.run_as_of, n.outcome
),
told AS (
    UPDATE contractors AS c
    SET last_cnrpp_alert_sent_at = greatest(c.last_cnrpp_alert_sent_at, a.latest)
    FROM (
        SELECT contractor_id, max(run_as_of) AS latest
        FROM alerts
        WHERE outcome = 'accepted'
        GROUP BY contractor_id
    ) AS a
    WHERE c.id = a.contractor_id
)
SELECT n.batch_id::text,
       n.position,
       CASE WHEN m.status = 'abandoned' THEN 'abandoned' ELSE n.outcome END AS outcome
FROM answered AS n
LEFT JOIN mail AS m ON m.id = n.email_id
