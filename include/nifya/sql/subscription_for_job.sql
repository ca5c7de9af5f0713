-- one row with a subscription's owner, and whether it is active
SELECT user_id::text AS user_id, active IS TRUE AS active
FROM subscriptions
WHERE id = :subscription_id
