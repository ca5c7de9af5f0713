-- a row is somebody who has or had clients, and whether that is an active user with the consultant's role
SELECT u.id,
       u.is_active
       AND u.deleted_at IS NULL
       AND EXISTS (SELECT FROM user_roles AS r WHERE r.user_id = u.id AND r.role::text = 'CONSULTANT') AS found
FROM users AS u
WHERE (
    EXISTS (SELECT FROM consultant_client_assignments AS a WHERE a.consultant_id = u.id)
    OR EXISTS (SELECT FROM consultant_dashboard AS d WHERE d.consultant_id = u.id)
)
  AND (CAST(:consultant_id AS uuid) IS NULL OR u.id = CAST(:consultant_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR u.id > CAST(:after AS uuid))
ORDER BY u.id
LIMIT :limit
