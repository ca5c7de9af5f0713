-- a row is the digest whose mail carries a link, and whether the link still holds
SELECT d.frequency::text AS frequency, d.created_at > now() - :days * interval '1 day' AS is_live
FROM digests AS d
WHERE d.unsubscribe_token = CAST(:token AS uuid)
