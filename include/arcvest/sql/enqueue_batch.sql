-- a row is a job of one day's batch that was not enqueued before
WITH asked AS (
    SELECT a.id, a.job_type, a.priority, a.payload
    FROM jsonb_to_recordset(CAST(:jobs AS jsonb)) AS a (id uuid, job_type text, priority integer, payload jsonb)
),
noted AS (
    INSERT INTO job_batches (batch_date, batch, job_type, job_id)
    SELECT CAST(:day AS date), CAST(:batch AS text), asked.job_type, asked.id
    FROM asked
    ORDER BY asked.job_type
    ON CONFLICT DO NOTHING
    RETURNING job_id
)
INSERT INTO job_queue (id, job_type, payload, priority, correlation_id)
SELECT asked.id, asked.job_type, asked.payload, asked.priority, CAST(:correlation AS uuid)
FROM asked
JOIN noted ON noted.job_id = asked.id
ORDER BY asked.priority DESC, asked.job_type
ON CONFLICT DO NOTHING
