-- a row is an active user for whom something waits that is to stand in a digest of this frequency
SELECT DISTINCT n.user_id
FROM notifications AS n
JOIN users AS u ON u.id = n.user_id
JOIN LATERAL (
    -- a channel's own preference goes before that for all channels
    SELECT p.is_enabled, p.frequency_preference::text AS frequency
    FROM notification_preferences AS p
    WHERE p.user_id = n.user_id
      AND p.notification_type = n.notification_type
      AND (p.channel IS NULL OR p.channel::text = 'EMAIL')
    ORDER BY p.channel IS NULL
    LIMIT 1
) AS p ON p.is_enabled AND p.frequency = CAST(:frequency AS text) || '_DIGEST'
WHERE n.status = 'PENDING'
  AND n.channel = 'EMAIL'
  AND n.priority IN ('LOW', 'NORMAL')
  AND n.batch_id IS NULL
  AND n.digest_id IS NULL
  AND n.created_at <= :as_of
  AND n.scheduled_for <= :as_of
  AND u.is_active
  AND u.deleted_at IS NULL
  AND (
      u.company_id = n.company_id
      OR EXISTS (
          SELECT FROM consultant_client_assignments AS a
          JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
          WHERE a.consultant_id = u.id
            AND a.company_id = n.company_id
            AND a.status::text = 'ACTIVE'
      )
  )
  AND NOT EXISTS (
      SELECT FROM digests AS d
      WHERE d.user_id = n.user_id
        AND d.frequency::text = :frequency
        AND d.period_start = :period_start
        AND (d.status <> 'failed' OR d.permanent OR d.retry_count >= 3)
  )
ORDER BY n.user_id
