-- a row is a notification that this run has claimed, in a batch, at a place, as the message that will go out
WITH wanted AS (
    SELECT w.batch_id, w.id, w.message, w.place
    FROM unnest(CAST(:batches AS uuid[]), CAST(:ids AS uuid[]), CAST(:messages AS text[]))
        WITH ORDINALITY AS w (batch_id, id, message, place)
),
due AS (
    SELECT n.id
    FROM notifications AS n
    JOIN users AS u ON u.id = n.user_id
    LEFT JOIN LATERAL (
        SELECT p.is_enabled
        FROM notification_preferences AS p
        WHERE p.user_id = n.user_id
          AND p.notification_type = n.notification_type
          AND (p.channel IS NULL OR p.channel::text = n.channel::text)
        ORDER BY p.channel IS NULL
        LIMIT 1
    ) AS p ON TRUE
    WHERE n.id = ANY (CAST(:ids AS uuid[]))
      AND n.status IN ('PENDING', 'QUEUED', 'RETRYING')
      AND n.batch_id IS NULL
      AND n.digest_id IS NULL
      AND coalesce(n.next_attempt_at, '-infinity') <= now()
      AND u.is_active
      AND u.deleted_at IS NULL
      AND (
          u.company_id = n.company_id
          OR EXISTS (
              SELECT FROM consultant_client_assignments AS a
              JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
              WHERE a.consultant_id = u.id
                AND a.company_id = n.company_id
                AND a.status::text = 'ACTIVE'
          )
      )
      AND coalesce(p.is_enabled, TRUE)
    ORDER BY n.id
    FOR UPDATE OF n
),
claimed AS (
    UPDATE notifications AS n
    SET status = 'SENDING',
        batch_id = w.batch_id,
        status_reason = 'is on its way',
        updated_at = clock_timestamp()
    FROM due
    JOIN wanted AS w ON w.id = due.id
    WHERE n.id = due.id
    RETURNING n.id, n.company_id, w.batch_id, w.message, w.place
),
batches AS (
    INSERT INTO email_batches (id, provider, run_id, claimed_at)
    -- batches that are claimed together go out in their order, so each has an instant of its own
    SELECT batch_id, :provider, :run_id, statement_timestamp() + min(place) * interval '1 microsecond'
    FROM claimed
    GROUP BY batch_id
    ON CONFLICT (id) DO NOTHING
)
INSERT INTO email_attempts (batch_id, position, company_id, notification_id, message)
SELECT c.batch_id,
       -- a batch that was claimed by halves goes on counting
       (SELECT count(*) FROM email_attempts AS a WHERE a.batch_id = c.batch_id)
           + row_number() OVER (PARTITION BY c.batch_id ORDER BY c.place),
       c.company_id,
       c.id,
       c.message
FROM claimed AS c
RETURNING notification_id
