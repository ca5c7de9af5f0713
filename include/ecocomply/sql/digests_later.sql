-- one row with the number of people who have a digest of a later period already
SELECT count(DISTINCT d.user_id)
FROM digests AS d
WHERE d.frequency::text = :frequency
  AND d.period_start > :period_start
