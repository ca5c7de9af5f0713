-- a row is a record that was set aside and still is, and that this poll has not tried yet
SELECT lab_record_key, record
FROM lab_set_aside
WHERE resolved_at IS NULL
  AND record IS NOT NULL
  AND (CAST(:before AS timestamptz) IS NULL OR last_tried_at < CAST(:before AS timestamptz))
  AND lab_record_key > :after
ORDER BY lab_record_key
LIMIT :limit
