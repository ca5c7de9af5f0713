-- one row if there is a user of that id
SELECT id
FROM users
WHERE id = :user_id
