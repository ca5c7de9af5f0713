-- a row is a digest that this run has claimed, in a batch, at a place, as the message that will go out
WITH wanted AS (
    SELECT w.batch_id, w.digest_id, w.message, w.place
    FROM unnest(CAST(:batches AS uuid[]), CAST(:ids AS uuid[]), CAST(:messages AS text[]))
        WITH ORDINALITY AS w (batch_id, digest_id, message, place)
),
due AS (
    SELECT d.id
    FROM digests AS d
    JOIN users AS u ON u.id = d.user_id
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.status = 'queued'
      AND d.batch_id IS NULL
      AND u.is_active
      AND u.deleted_at IS NULL
    ORDER BY d.id
    FOR UPDATE OF d
),
claimed AS (
    UPDATE digests AS d
    SET batch_id = w.batch_id,
        updated_at = clock_timestamp()
    FROM due
    JOIN wanted AS w ON w.digest_id = due.id
    WHERE d.id = due.id
    RETURNING d.id, d.company_id, w.batch_id, w.message, w.place
),
batches AS (
    INSERT INTO email_batches (id, provider, run_id, claimed_at)
    -- batches that are claimed together go out in their order, so each has an instant of its own
    SELECT batch_id, :provider, :run_id, statement_timestamp() + min(place) * interval '1 microsecond'
    FROM claimed
    GROUP BY batch_id
    ON CONFLICT (id) DO NOTHING
)
INSERT INTO email_attempts (batch_id, position, company_id, digest_id, message)
SELECT c.batch_id,
       -- a batch that was claimed by halves goes on counting
       (SELECT count(*) FROM email_attempts AS a WHERE a.batch_id = c.batch_id)
           + row_number() OVER (PARTITION BY c.batch_id ORDER BY c.place),
       c.company_id,
       c.id,
       c.message
FROM claimed AS c
