-- a row is a system that has alerts that are still to be mailed
SELECT coalesce(split_part(dag_id, '_', 1), 'clearpath') AS system
FROM alert
WHERE delivered_at IS NULL
  AND NOT no_address
GROUP BY 1
ORDER BY min(created_at)
