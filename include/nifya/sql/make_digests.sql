-- a row is a user whose hour is settled, with whether there is a digest; it holds all that nobody told of yet
WITH wanted AS (
    SELECT w.user_id, w.due_at, w.due_on
    FROM unnest(CAST(:users AS text[]), CAST(:due AS timestamptz[]), CAST(:days AS date[]))
        AS w (user_id, due_at, due_on)
),
due AS (
    SELECT u.id, w.due_at, w.due_on
    FROM users AS u
    JOIN wanted AS w ON w.user_id = u.id
    WHERE u.digests_stopped_at IS NULL
      AND w.due_at > coalesce(u.last_digest_at, u.created_at, '-infinity')
    ORDER BY u.id
    FOR UPDATE OF u
),
-- whose hour was moved has that date's digest already: what is new waits for the next date
news AS (
    SELECT due.id, due.due_at, due.due_on
    FROM due
    WHERE EXISTS (
        SELECT 1
        FROM notifications AS n
        WHERE n.user_id = due.id
          AND n.digest_id IS NULL
          AND NOT n.past_at_adoption
          AND n.read IS NOT TRUE
    )
      AND NOT EXISTS (
          SELECT 1
          FROM digests AS d
          WHERE d.user_id = due.id
            AND (d.due_on = due.due_on OR d.due_at = due.due_at)
      )
),
-- one that still waits for the mail takes in what is new, so that an outage ends in one mail
taken_in AS (
    UPDATE digests AS d
    SET due_at = news.due_at,
        due_on = news.due_on,
        updated_at = clock_timestamp()
    FROM news
    WHERE d.id = (
        SELECT o.id
        FROM digests AS o
        WHERE o.user_id = news.id
          AND (o.status = 'queued' OR (o.status = 'failed' AND o.retry_count < 3 AND NOT o.permanent))
          AND o.batch_id IS NULL
          AND o.due_at < news.due_at
        ORDER BY o.due_at DESC, o.id
        LIMIT 1
    )
      AND d.batch_id IS NULL
      AND d.status IN ('queued', 'failed')
      AND NOT d.permanent
    RETURNING d.id, d.user_id
),
made AS (
    INSERT INTO digests (user_id, due_at, due_on)
    SELECT news.id, news.due_at, news.due_on
    FROM news
    WHERE NOT EXISTS (SELECT 1 FROM taken_in WHERE taken_in.user_id = news.id)
    ORDER BY news.id
    ON CONFLICT DO NOTHING
    RETURNING id, user_id
),
telling AS (
    SELECT id, user_id FROM made
    UNION ALL
    SELECT id, user_id FROM taken_in
),
told AS (
    UPDATE notifications AS n
    SET digest_id = telling.id
    FROM telling
    WHERE n.user_id = telling.user_id
      AND n.digest_id IS NULL
      AND NOT n.past_at_adoption
),
settled AS (
    UPDATE users AS u
    SET last_digest_at = :as_of,
        updated_at = clock_timestamp()
    FROM due
    WHERE u.id = due.id
    RETURNING u.id
)
SELECT settled.id, telling.id IS NOT NULL AS is_made
FROM settled
LEFT JOIN telling ON telling.user_id = settled.id
