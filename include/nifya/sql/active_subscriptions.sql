-- a row is a subscription that is active
SELECT id
FROM subscriptions
WHERE active
ORDER BY id
