-- a row is an alert that can't be rendered until its contractor's data are mended; it is tried again by every run
UPDATE cnrpp_alerts AS a
SET last_error = b.reason
FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[])) AS b (id, reason)
WHERE a.id = b.id
  AND a.sent_at IS NULL
