-- a row is a notification that the queue may have from now on, as the job that it becomes
WITH waiting AS (
    SELECT o.id
    FROM notification_outbox AS o
    WHERE o.id = ANY (CAST(:ids AS uuid[]))
      AND o.status = 'pending'
      AND o.batch_id IS NULL
      AND coalesce(o.sink, 'redis') = 'redis'
      -- a reminder's registration may have gone on since the run looked; the next run calls it off
      AND (
          o.begun_at IS NOT NULL
          OR o.template_slug <> ALL (CAST(:reminders AS text[]))
          OR EXISTS (
              SELECT FROM registration_session AS s
              WHERE s.id = o.tenant_id AND s."currentStage"::text NOT IN ('step_4', 'complete')
          )
      )
    ORDER BY o.id
    FOR UPDATE
)
UPDATE notification_outbox AS o
SET sink = 'redis',
    begun_at = coalesce(o.begun_at, clock_timestamp())
FROM waiting
WHERE o.id = waiting.id
RETURNING o.id, o.dedupe_key, o.template_slug, o.recipient, o.data
