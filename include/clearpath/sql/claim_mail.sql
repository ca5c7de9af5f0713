-- a row is a mail that this run has claimed, in a batch, at a place, as the message that will go out
WITH wanted AS (
    SELECT w.batch_id, w.email_id, w.message, w.frame, w.place
    FROM unnest(
        CAST(:batches AS uuid[]),
        CAST(:ids AS uuid[]),
        -- JSON has no line breaks; the driver would escape an array of text quote by quote
        string_to_array(CAST(:messages AS text), chr(10)),
        string_to_array(CAST(:frames AS text), chr(10))
    ) WITH ORDINALITY AS w (batch_id, email_id, message, frame, place)
),
due AS (
    SELECT e.id
    FROM email_log AS e
    WHERE e.id = ANY (CAST(:ids AS uuid[]))
      AND (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
      AND e.batch_id IS NULL
      AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
      AND coalesce(e.next_attempt_at, '-infinity') <= now()
      AND NOT EXISTS (
          SELECT 1
          FROM test_sessions AS s
          WHERE s.id = e.test_session_id
            AND s.status IN ('cancelled', 'expired', 'complete')
            AND e.email_type::text = ANY (CAST(:sequenced AS text[]))
      )
    ORDER BY e.id
    FOR UPDATE
),
claimed AS (
    UPDATE email_log AS e
    SET batch_id = w.batch_id,
        updated_at = clock_timestamp()
    FROM due
    JOIN wanted AS w ON w.email_id = due.id
    WHERE e.id = due.id
    RETURNING e.id, w.batch_id, w.message, w.frame, w.place
),
batches AS (
    INSERT INTO email_batches (id, provider, run_id, claimed_at)
    -- batches that are claimed together go out in their order, so each has an instant of its own
    SELECT batch_id, :provider, :run_id, statement_timestamp() + min(place) * interval '1 microsecond'
    FROM claimed
    GROUP BY batch_id
    ON CONFLICT (id) DO NOTHING
)
INSERT INTO email_attempts (batch_id, position, email_id, message, frame)
SELECT c.batch_id,
       -- a batch that was claimed by halves goes on counting
       (SELECT count(*) FROM email_attempts AS a WHERE a.batch_id = c.batch_id)
           + row_number() OVER (PARTITION BY c.batch_id ORDER BY c.place),
       c.id,
       c.message,
       c.frame
FROM claimed AS c
