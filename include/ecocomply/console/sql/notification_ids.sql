-- a row is a notification that the filter leaves, the latest first
SELECT n.id, n.created_at
FROM notifications AS n
WHERE (
        CAST(:some_id AS uuid) IS NULL
        OR n.id = CAST(:some_id AS uuid)
        OR n.user_id = CAST(:some_id AS uuid)
        OR n.entity_id = CAST(:some_id AS uuid)
        OR n.digest_id = CAST(:some_id AS uuid)
    )
  AND (CAST(:user_ids AS uuid[]) IS NULL OR n.user_id = ANY (CAST(:user_ids AS uuid[])))
  AND (CAST(:company_ids AS uuid[]) IS NULL OR n.company_id = ANY (CAST(:company_ids AS uuid[])))
  AND (CAST(:notification_type AS text) IS NULL OR n.notification_type = CAST(:notification_type AS text))
  AND (CAST(:channel AS text) IS NULL OR n.channel::text = CAST(:channel AS text))
  AND (CAST(:status AS text) IS NULL OR n.status::text = CAST(:status AS text))
  AND (NOT CAST(:unknown AS boolean) OR n.outcome_unknown)
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (n.created_at, n.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
ORDER BY n.created_at DESC, n.id DESC
LIMIT :limit
