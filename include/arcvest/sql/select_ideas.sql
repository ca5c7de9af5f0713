-- a row is an idea that is selected, with the pipeline job that is enqueued for it
WITH holder AS (
    SELECT q.id, q.correlation_id
    FROM job_queue AS q
    WHERE q.id = CAST(:job AS uuid)
      AND q.status = 'processing'
      AND q.attempts = :attempt
      AND q.claimed_by = :owner
    FOR UPDATE
),
room AS MATERIALIZED (
    SELECT greatest(0, CAST(:count AS integer) - (
        SELECT count(*) FROM idea_queue AS i WHERE i.selected_by_job_id = holder.id
    )) AS places
    FROM holder
),
picked AS MATERIALIZED (
    SELECT i.id
    FROM idea_queue AS i
    WHERE i.id = ANY (CAST(:ids AS uuid[]))
      AND i.status = 'scored'
    ORDER BY i.score DESC NULLS LAST, i.published_at DESC NULLS LAST, i.id
    LIMIT (SELECT places FROM room)
    FOR UPDATE
),
selected AS (
    UPDATE idea_queue AS i
    SET status = 'selected',
        selected_by_job_id = holder.id,
        selected_at = clock_timestamp(),
        updated_at = clock_timestamp()
    FROM picked, holder
    WHERE i.id = picked.id
    RETURNING i.id
)
INSERT INTO job_queue (job_type, payload, priority, correlation_id, parent_job_id)
SELECT CAST(:job_type AS text), jsonb_build_object('idea_id', selected.id), CAST(:priority AS integer),
       holder.correlation_id, holder.id
FROM selected, holder
ORDER BY selected.id
