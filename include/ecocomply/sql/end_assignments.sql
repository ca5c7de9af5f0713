-- a row is an assignment that ends now, if there is still a reason for that
WITH ended AS (
    SELECT a.id, c.deleted_at <= :as_of AS without_client
    FROM consultant_client_assignments AS a
    JOIN companies AS c ON c.id = a.company_id
    JOIN users AS u ON u.id = a.consultant_id
    WHERE a.id = ANY (CAST(:ids AS uuid[]))
      AND a.status = 'ACTIVE'
      AND (
          c.deleted_at <= :as_of
          OR (
              u.is_active
              AND u.deleted_at IS NULL
              AND NOT EXISTS (SELECT FROM user_roles AS r WHERE r.user_id = u.id AND r.role::text = 'CONSULTANT')
          )
      )
    ORDER BY a.id
    FOR NO KEY UPDATE OF a
)
UPDATE consultant_client_assignments AS a
SET status = 'INACTIVE',
    status_reason = CASE
        WHEN ended.without_client THEN 'the client company was deleted'
        ELSE 'the user is no consultant any more'
    END,
    updated_at = clock_timestamp()
FROM ended
WHERE a.id = ended.id
