-- a row is a cause of failures: how many rows it has ended, how many wait for another try, and when it last ended one
WITH failures AS MATERIALIZED (
    SELECT
        {cause} AS cause,
        q.{status} = {failed_word} AS ended,
        coalesce({finished}, {updated}, {due_at}) AS ended_at
    FROM {table} AS q
    WHERE q.{status} = {failed_word}
        OR (q.{status} = {due_word} AND q.{error} IS NOT NULL)
    LIMIT :most
)
SELECT
    left(encode(sha256(convert_to(f.cause, 'UTF8')), 'hex'), 16) AS cause_id,
    f.cause,
    count(*) FILTER (WHERE f.ended) AS failed,
    count(*) FILTER (WHERE NOT f.ended) AS waiting,
    max(f.ended_at) FILTER (WHERE f.ended) AS latest
FROM failures AS f
GROUP BY f.cause
ORDER BY failed DESC, waiting DESC, f.cause
LIMIT :limit
