-- a row is a status of notifications that wants a look, with the sink that they are bound to
SELECT o.status::text AS status, o.sink::text AS sink, count(*) AS notifications
FROM notification_outbox AS o
WHERE o.status IN ('pending', 'unknown')
GROUP BY 1, 2
ORDER BY 1, 2
