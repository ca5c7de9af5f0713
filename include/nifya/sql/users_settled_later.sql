-- one row with the number of users for whose digest a run of a later instant was there before
SELECT count(*)
FROM users AS u
WHERE u.last_digest_at > :as_of
  AND u.digests_stopped_at IS NULL
  AND (CAST(:hour AS integer) IS NULL OR coalesce(u.digest_hour, 9) = :hour)
