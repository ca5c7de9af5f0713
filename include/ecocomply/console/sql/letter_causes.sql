-- a row is a cause of dead letters, with how many it has, of which types, and when the last one came
WITH letters AS MATERIALIZED (
    SELECT {cause} AS cause, j.job_type, q.created_at
    FROM dead_letter_queue AS q
    JOIN background_jobs AS j ON j.id = q.job_id
    WHERE {letters_match}
    LIMIT :most
)
SELECT
    left(encode(sha256(convert_to(l.cause, 'UTF8')), 'hex'), 16) AS cause_id,
    l.cause,
    count(*) AS letters,
    array_agg(DISTINCT l.job_type) AS job_types,
    max(l.created_at) AS latest
FROM letters AS l
GROUP BY l.cause
ORDER BY letters DESC, l.cause
LIMIT :limit
