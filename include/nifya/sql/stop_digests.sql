-- a row is a user who wants no more digests, known by the token of one that is not too old
UPDATE users AS u
SET digests_stopped_at = coalesce(u.digests_stopped_at, clock_timestamp()),
    updated_at = clock_timestamp()
FROM digests AS d
WHERE d.unsubscribe_token = :token
  AND d.created_at > clock_timestamp() - make_interval(days => :days)
  AND u.id = d.user_id
