-- a row is a subscription whose runs failed too often in a row, with the last success before them
SELECT p.subscription_id, p.failures_in_row, p.last_success_at, p.error, s.type_id
FROM subscription_processing AS p
JOIN subscriptions AS s ON s.id = p.subscription_id
WHERE p.subscription_id = ANY (CAST(:ids AS uuid[]))
  AND p.failures_in_row >= :most
  AND s.active
ORDER BY p.subscription_id
