-- a row is a mail of the log, the latest due first (before them what has no date), with all its reason is made of
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
    m.test_session_id,
    u.email AS recipient,
    u.full_name,
    b.run_id AS claimed_by,
    b.claimed_at,
    twin.sent_at AS twin_sent_at
FROM email_log AS m
LEFT JOIN users AS u ON u.id = m.user_id
LEFT JOIN email_batches AS b ON b.id = m.batch_id
LEFT JOIN LATERAL (
    SELECT max(t.sent_at) AS sent_at
    FROM email_log AS t
    WHERE m.status = 'duplicate'
      AND t.status = 'sent'
      AND t.user_id = m.user_id
      AND t.email_type = m.email_type
      AND t.test_session_id IS NOT DISTINCT FROM m.test_session_id
) AS twin ON TRUE
WHERE (NOT CAST(:by_status AS boolean) OR m.status = :status)
  AND (NOT CAST(:unknown AS boolean) OR m.outcome_unknown)
  AND (NOT CAST(:by_type AS boolean) OR m.email_type = :email_type)
  AND (CAST(:due_from AS timestamptz) IS NULL OR m.scheduled_at >= :due_from)
  AND (CAST(:due_before AS timestamptz) IS NULL OR m.scheduled_at < :due_before)
  AND (CAST(:some_id AS uuid) IS NULL OR m.id = :some_id OR m.test_session_id = :some_id OR m.user_id = :some_id)
  AND (CAST(:user_ids AS uuid[]) IS NULL OR m.user_id = ANY (CAST(:user_ids AS uuid[])))
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (m.scheduled_at, m.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
  AND (
      CAST(:after_at AS timestamptz) IS NOT NULL
      OR CAST(:after_id AS uuid) IS NULL
      OR m.scheduled_at IS NOT NULL
      OR m.id < CAST(:after_id AS uuid)
  )
ORDER BY m.scheduled_at DESC, m.id DESC
LIMIT :limit
