-- a row is an alert that this run has claimed, in a batch, at a place, as the message that will go out
WITH wanted AS (
    SELECT w.batch_id, w.alert_id, w.message, w.place
    FROM unnest(CAST(:batches AS uuid[]), CAST(:ids AS uuid[]), CAST(:messages AS text[]))
        WITH ORDINALITY AS w (batch_id, alert_id, message, place)
),
due AS (
    SELECT a.id
    FROM cnrpp_alerts AS a
    WHERE a.id = ANY (CAST(:ids AS uuid[]))
      AND a.sent_at IS NULL
      AND a.batch_id IS NULL
      AND NOT a.outcome_unknown
    ORDER BY a.id
    FOR UPDATE
),
claimed AS (
    UPDATE cnrpp_alerts AS a
    SET batch_id = w.batch_id
    FROM due
    JOIN wanted AS w ON w.alert_id = due.id
    WHERE a.id = due.id
    RETURNING a.id, w.batch_id, w.message, w.place
),
batches AS (
    INSERT INTO email_batches (id, provider, run_id, claimed_at)
    -- batches that are claimed together go out in their order, so each has an instant of its own
    SELECT batch_id, :provider, :run_id, statement_timestamp() + min(place) * interval '1 microsecond'
    FROM claimed
    GROUP BY batch_id
    ON CONFLICT (id) DO NOTHING
)
INSERT INTO email_attempts (batch_id, position, cnrpp_alert_id, message)
SELECT c.batch_id,
       -- a batch that was claimed by halves goes on counting
       (SELECT count(*) FROM email_attempts AS a WHERE a.batch_id = c.batch_id)
           + row_number() OVER (PARTITION BY c.batch_id ORDER BY c.place),
       c.id,
       c.message
FROM claimed AS c
