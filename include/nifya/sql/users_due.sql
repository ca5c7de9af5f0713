-- a row is a user whose hour was crossed since the latest digest, or since there is the user, and when it was
SELECT u.id, c.due_at, c.due_on
FROM users AS u
JOIN unnest(
    CAST(:zones AS text[]), CAST(:hours AS integer[]), CAST(:crossed AS timestamptz[]), CAST(:days AS date[])
) AS c (timezone, digest_hour, due_at, due_on)
    ON c.timezone = coalesce(u.timezone, 'Europe/Madrid')
   AND c.digest_hour = coalesce(u.digest_hour, 9)
WHERE u.digests_stopped_at IS NULL
  AND c.due_at > coalesce(u.last_digest_at, u.created_at, '-infinity')
ORDER BY u.id
