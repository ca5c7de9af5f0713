-- the row is one mail of the log, with its session and the claim that holds it
SELECT
    m.id,
    m.email_type,
    m.status::text AS status,
    m.scheduled_at,
    m.sent_at,
    m.retry_count,
    m.permanent,
    m.outcome_unknown,
    m.next_attempt_at,
    m.status_reason,
    m.last_error,
    m.provider_message_id,
    m.created_at,
    m.updated_at,
    m.user_id,
    m.test_session_id,
    u.email AS recipient,
    u.full_name,
    s.status::text AS session_status,
    s.address,
    s.clearpath_order_id,
    s.kit_serial_number,
    b.id AS claim_id,
    b.run_id AS claimed_by,
    b.claimed_at,
    twin.id AS twin_id,
    twin.sent_at AS twin_sent_at
FROM email_log AS m
LEFT JOIN users AS u ON u.id = m.user_id
LEFT JOIN test_sessions AS s ON s.id = m.test_session_id
LEFT JOIN email_batches AS b ON b.id = m.batch_id
LEFT JOIN LATERAL (
    SELECT t.id, t.sent_at
    FROM email_log AS t
    WHERE m.status = 'duplicate'
      AND t.status = 'sent'
      AND t.user_id = m.user_id
      AND t.email_type = m.email_type
      AND t.test_session_id IS NOT DISTINCT FROM m.test_session_id
    ORDER BY t.sent_at DESC NULLS LAST, t.id
    LIMIT 1
) AS twin ON TRUE
WHERE m.id = :mail_id
