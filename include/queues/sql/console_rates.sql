-- a row is a status in which rows ended, with how many did in the last hour and in the last day
-- The trail has no index over time: its ids grow with it, an hour is more than two sessions can differ.
WITH start AS MATERIALIZED (
    SELECT coalesce((
        SELECT a.id
        FROM queue_audit AS a
        WHERE a.moved_at < now() - interval '25 hours'
        ORDER BY a.id DESC
        LIMIT 1
    ), 0) AS id
)
SELECT
    a.to_status AS status,
    count(*) FILTER (WHERE a.moved_at > now() - interval '1 hour') AS last_hour,
    count(*) AS last_day
FROM queue_audit AS a
WHERE a.id > (SELECT id FROM start)
    AND a.queue = {table_word}
    AND a.moved_at > now() - interval '1 day'
    AND a.to_status IN ({ended_words})
GROUP BY a.to_status
ORDER BY 1
