-- a row says whether the user whose digest carried the token gets no more digests
SELECT u.digests_stopped_at IS NOT NULL AS is_stopped
FROM digests AS d
JOIN users AS u ON u.id = d.user_id
WHERE d.unsubscribe_token = :token
  AND d.created_at > clock_timestamp() - make_interval(days => :days)
