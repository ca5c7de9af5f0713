-- a row is a notification that was begun so long ago that the queue may have forgotten it
SELECT o.id
FROM notification_outbox AS o
WHERE o.status = 'pending'
  AND o.sink = 'redis'
  AND o.begun_at < now() - make_interval(secs => :remembered)
ORDER BY o.id
