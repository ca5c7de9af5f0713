-- a row is an active assignment whose client was deleted, or whose consultant is none any more
SELECT a.id
FROM consultant_client_assignments AS a
JOIN companies AS c ON c.id = a.company_id
JOIN users AS u ON u.id = a.consultant_id
WHERE a.status = 'ACTIVE'
  AND (
      c.deleted_at <= :as_of
      OR (
          u.is_active
          AND u.deleted_at IS NULL
          AND NOT EXISTS (SELECT FROM user_roles AS r WHERE r.user_id = u.id AND r.role::text = 'CONSULTANT')
      )
  )
  AND (CAST(:consultant_id AS uuid) IS NULL OR a.consultant_id = CAST(:consultant_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR a.id > CAST(:after AS uuid))
ORDER BY a.id
LIMIT :limit
