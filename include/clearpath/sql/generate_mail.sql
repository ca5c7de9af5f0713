-- a row is a mail of a generated session's sequence, as its course left it, or the second copy of one that is due
WITH planned AS (
    SELECT n, n % 1000 * 919 % 1000 AS story, s.id AS session_id, s.user_id, s.activated_at, s.expected_completion_date,
           s.status::text AS session_status, m.email_type, m.days,
           CASE
               WHEN m.days < 91 THEN s.activated_at + make_interval(days => m.days)
               ELSE (s.expected_completion_date + interval '15 hours') AT TIME ZONE 'UTC'
           END AS due
    FROM generate_series(1, CAST(:sessions AS integer)) AS n
    JOIN test_sessions AS s ON s.id = md5('clearpath session ' || n)::uuid
    CROSS JOIN (
        VALUES ('day_30', 30), ('day_60', 60), ('day_80', 80), ('day_88', 88), ('results_prompt', 91)
    ) AS m (email_type, days)
    WHERE s.activated_at IS NOT NULL
),
judged AS (
    SELECT p.*, c.copy,
           CASE
               WHEN c.copy = 1 THEN CASE WHEN n % 2 = 0 THEN 'queued' ELSE 'duplicate' END
               WHEN story >= 990 AND due BETWEEN CAST(:now AS timestamptz) - interval '15 minutes' AND :now THEN 'queued'
               -- a mail of a session that was cancelled meanwhile, due and not cancelled yet
               WHEN story BETWEEN 840 AND 879 AND n % 8 = 0 AND days = 30 AND due <= :now THEN 'queued'
               WHEN session_status IN ('cancelled', 'expired', 'complete') AND (due > :now OR days = 91) THEN 'cancelled'
               WHEN due > :now THEN 'queued'
               WHEN (n * 31 + days) % 1000 < 985 THEN 'sent'
               WHEN (n * 31 + days) % 1000 < 990
                    AND session_status NOT IN ('cancelled', 'expired', 'complete') THEN 'failed'
               WHEN (n * 31 + days) % 1000 < 995 THEN 'abandoned'
               ELSE 'failed for good'
           END AS became
    FROM planned AS p
    JOIN generate_series(0, 1) AS c (copy)
        ON c.copy = 0
        OR (story >= 990 AND n % 5 = 0 AND due BETWEEN CAST(:now AS timestamptz) - interval '15 minutes' AND :now)
)
INSERT INTO email_log (
    id, user_id, test_session_id, email_type, status, scheduled_at, sent_at, provider_message_id, retry_count,
    permanent, status_reason, last_error, created_at, updated_at
)
SELECT md5('clearpath mail ' || n || ' ' || email_type || ' ' || copy)::uuid,
       user_id,
       session_id,
       email_type,
       CASE WHEN became = 'failed for good' THEN 'failed' ELSE became END,
       due,
       CASE WHEN became = 'sent' THEN least(due + make_interval(mins => (n % 15)::integer), :now) END,
       CASE WHEN became = 'sent' THEN 'gen-' || n || '-' || email_type END,
       CASE became WHEN 'failed' THEN 1 + n % 2 WHEN 'abandoned' THEN 3 WHEN 'failed for good' THEN 1 ELSE 0 END,
       became = 'failed for good',
       CASE became
           WHEN 'cancelled' THEN 'session ' || session_status
           WHEN 'duplicate' THEN 'another mail of this kind is on its way'
       END,
       CASE WHEN became IN ('failed', 'abandoned', 'failed for good') THEN 'mailbox unavailable' END,
       activated_at,
       least(greatest(due, activated_at), :now)
FROM judged
ON CONFLICT DO NOTHING
