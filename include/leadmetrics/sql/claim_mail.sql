-- a row is a notification that this run has claimed, in a batch, at a place, as the message that will go out
WITH wanted AS (
    SELECT *
    FROM unnest(
        CAST(:batches AS uuid[]), CAST(:ids AS uuid[]), CAST(:messages AS text[])
    ) WITH ORDINALITY AS w (batch_id, id, message, place)
),
waiting AS (
    SELECT o.id
    FROM notification_outbox AS o
    WHERE o.id = ANY (CAST(:ids AS uuid[]))
      AND o.status = 'pending'
      AND o.batch_id IS NULL
      AND coalesce(o.sink, 'email') = 'email'
      -- a reminder's registration may have gone on since the run looked; the next run calls it off
      AND (
          o.template_slug <> ALL (CAST(:reminders AS text[]))
          OR EXISTS (
              SELECT FROM registration_session AS s
              WHERE s.id = o.tenant_id AND s."currentStage"::text NOT IN ('step_4', 'complete')
          )
      )
    ORDER BY o.id
    FOR UPDATE
),
claimed AS (
    UPDATE notification_outbox AS o
    SET sink = 'email',
        batch_id = w.batch_id
    FROM waiting
    JOIN wanted AS w ON w.id = waiting.id
    WHERE o.id = waiting.id
    RETURNING o.id, w.batch_id, w.message, w.place
)
INSERT INTO notification_attempts (batch_id, position, notification_id, message, run_id, claimed_at)
SELECT c.batch_id,
       -- a batch that was claimed by halves goes on counting
       (SELECT count(*) FROM notification_attempts AS a WHERE a.batch_id = c.batch_id)
           + row_number() OVER (PARTITION BY c.batch_id ORDER BY c.place),
       c.id,
       c.message,
       :run_id,
       -- batches that are claimed together go out in their order, so each has an instant of its own
       statement_timestamp() + c.place * interval '1 microsecond'
FROM claimed AS c
