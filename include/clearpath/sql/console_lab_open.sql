-- a row is a lab record that is set aside and not yet resolved, the oldest first
SELECT
    r.id, r.lab_record_key, r.reason_code, r.reason, r.excerpt, r.first_seen_at, r.last_tried_at, r.tries
FROM lab_set_aside AS r
WHERE r.resolved_at IS NULL
  AND (CAST(:reason_code AS text) IS NULL OR r.reason_code = :reason_code)
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (r.first_seen_at, r.id) > (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
ORDER BY r.first_seen_at, r.id
LIMIT :limit
