-- a row is one of a hundred due jobs, claimed by hand
WITH candidate AS MATERIALIZED (
    SELECT id
    FROM bench_queue
    WHERE status = 'pending' AND next_run_at <= now()
    ORDER BY (- coalesce(priority, 0)), next_run_at, id
    LIMIT 100
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE bench_queue AS q
    SET status = 'processing', attempts = attempts + 1, started_at = clock_timestamp(), claimed_by = :owner
    FROM candidate
    WHERE q.id = candidate.id
    RETURNING q.id, q.attempts
),
trail AS (
    INSERT INTO queue_audit (queue, row_key, from_status, to_status, attempt)
    SELECT 'bench_queue', id::text, 'pending', 'processing', attempts FROM claimed
)
SELECT id FROM claimed
