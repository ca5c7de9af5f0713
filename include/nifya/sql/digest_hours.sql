-- a row is a local hour that users have chosen for their digest, in their zone
SELECT DISTINCT coalesce(u.timezone, 'Europe/Madrid') AS timezone, coalesce(u.digest_hour, 9) AS digest_hour
FROM users AS u
WHERE u.digests_stopped_at IS NULL
  AND (CAST(:hour AS integer) IS NULL OR coalesce(u.digest_hour, 9) = :hour)
ORDER BY 1, 2
