-- a row is a reminder that waits although its registration has gone on, or the late one has come to take its place
SELECT o.id,
       CASE WHEN later.overtakes THEN 'the late reminder takes its place' ELSE 'the registration has gone on' END AS reason
FROM notification_outbox AS o
CROSS JOIN LATERAL (
    SELECT o.template_slug = CAST(:early AS text) AND EXISTS (
        SELECT FROM notification_outbox AS l
        WHERE l.dedupe_key = CAST(:late AS text) || '__' || o.tenant_id
          AND l.status IN ('pending', 'queued', 'sent', 'unknown')
    ) AS overtakes
) AS later
WHERE o.status = 'pending'
  AND o.begun_at IS NULL
  AND o.batch_id IS NULL
  AND o.template_slug IN (:early, :late)
  AND (
      later.overtakes
      OR NOT EXISTS (
          SELECT FROM registration_session AS s
          WHERE s.id = o.tenant_id AND s."currentStage"::text NOT IN ('step_4', 'complete')
      )
  )
ORDER BY o.id
