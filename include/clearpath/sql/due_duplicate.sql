-- a row is a due mail that would be a second copy: of one sent, claimed or in doubt, or of an earlier due one
WITH due AS (
    SELECT e.id, e.user_id, e.test_session_id, e.email_type,
           row_number() OVER (
               PARTITION BY e.user_id, e.email_type, e.test_session_id
               ORDER BY e.scheduled_at, e.id
           ) AS place
    FROM email_log AS e
    WHERE (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
      AND e.batch_id IS NULL
      AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
)
SELECT d.id
FROM due AS d
WHERE (d.test_session_id IS NOT NULL OR d.email_type::text = ANY (CAST(:sequenced AS text[])))
  AND (
      d.place > 1
      OR EXISTS (
          SELECT 1
          FROM email_log AS o
          WHERE o.user_id = d.user_id
            AND o.email_type = d.email_type
            AND o.test_session_id IS NOT DISTINCT FROM d.test_session_id
            AND o.id <> d.id
            AND (o.status = 'sent' OR o.batch_id IS NOT NULL OR o.outcome_unknown)
      )
  )
ORDER BY d.id
