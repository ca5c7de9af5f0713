-- a row is an active owner or admin of the company
SELECT DISTINCT u.id
FROM users AS u
JOIN user_roles AS r ON r.user_id = u.id AND r.role IN ('OWNER', 'ADMIN')
WHERE u.company_id = :company_id
  AND u.is_active
  AND u.deleted_at IS NULL
ORDER BY u.id
