-- a row is a job that is done, by hand
WITH done AS (
    UPDATE bench_queue
    SET status = 'completed', completed_at = clock_timestamp(), claimed_by = NULL
    WHERE id = ANY (:keys) AND status = 'processing'
    RETURNING id, attempts
)
INSERT INTO queue_audit (queue, row_key, from_status, to_status, attempt)
SELECT 'bench_queue', id::text, 'processing', 'completed', attempts FROM done
