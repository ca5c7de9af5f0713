-- a row is a digest that was made, or made anew, with how much stands in it
WITH made AS (
    INSERT INTO digests (user_id, frequency, period_start)
    SELECT u.id, :frequency, :period_start
    FROM users AS u
    WHERE u.id = ANY (CAST(:users AS uuid[]))
      AND u.is_active
      AND u.deleted_at IS NULL
    ORDER BY u.id
    ON CONFLICT (user_id, frequency, period_start) DO UPDATE SET status = 'queued', updated_at = clock_timestamp()
        WHERE digests.status = 'failed' AND NOT digests.permanent AND digests.retry_count < 3
    RETURNING id, user_id, company_id
),
told AS (
    UPDATE notifications AS n
    SET digest_id = made.id,
        status_reason = 'stands in a digest that is on its way',
        updated_at = clock_timestamp()
    FROM made
    WHERE n.user_id = made.user_id
      AND n.status = 'PENDING'
      AND n.channel = 'EMAIL'
      AND n.priority IN ('LOW', 'NORMAL')
      AND n.batch_id IS NULL
      AND n.digest_id IS NULL
      AND n.created_at <= :as_of
      AND n.scheduled_for <= :as_of
      AND (
          made.company_id = n.company_id
          OR EXISTS (
              SELECT FROM consultant_client_assignments AS a
              JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
              WHERE a.consultant_id = made.user_id
                AND a.company_id = n.company_id
                AND a.status::text = 'ACTIVE'
          )
      )
      AND EXISTS (
          SELECT
          FROM (
              SELECT p.is_enabled, p.frequency_preference::text AS frequency
              FROM notification_preferences AS p
              WHERE p.user_id = n.user_id
                AND p.notification_type = n.notification_type
                AND (p.channel IS NULL OR p.channel::text = 'EMAIL')
              ORDER BY p.channel IS NULL
              LIMIT 1
          ) AS p
          WHERE p.is_enabled
            AND p.frequency = CAST(:frequency AS text) || '_DIGEST'
      )
    RETURNING n.digest_id
)
SELECT made.id, count(told.digest_id) AS entries
FROM made
LEFT JOIN told ON told.digest_id = made.id
GROUP BY made.id
