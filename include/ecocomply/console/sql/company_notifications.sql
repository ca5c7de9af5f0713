-- a row is a notification of a company, the latest first
SELECT n.id
FROM notifications AS n
WHERE n.company_id = :company_id
ORDER BY n.created_at DESC, n.id DESC
LIMIT :limit
