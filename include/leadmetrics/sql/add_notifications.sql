-- a row is a notification that was not known; a reminder needs its session still on its way, at this very moment
INSERT INTO notification_outbox (dedupe_key, tenant_id, template_slug, recipient, data, task_id, due_at)
SELECT w.dedupe_key, w.tenant_id, w.template_slug, w.recipient, w.data, w.task_id,
       w.due_at
FROM jsonb_to_recordset(CAST(:notifications AS jsonb)) AS w (
    dedupe_key text, tenant_id text, template_slug text, recipient text, data jsonb, task_id text, due_at timestamptz,
    reminder boolean
)
WHERE NOT w.reminder
   OR EXISTS (
       SELECT FROM registration_session AS s
       WHERE s.id = w.tenant_id AND s."currentStage"::text NOT IN ('step_4', 'complete')
   )
ORDER BY w.dedupe_key
ON CONFLICT (dedupe_key) DO NOTHING
RETURNING dedupe_key
