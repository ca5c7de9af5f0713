-- a row is a claim whose worker has not been heard of for too long; one that another session holds is alive
SELECT q.{key} AS row_key, coalesce(q.{attempts}, 0) AS attempt, coalesce({max_attempts}, :attempt_limit) AS attempt_limit
FROM {table} AS q
WHERE q.{status} = {claimed_word}
  AND coalesce(q.heartbeat_at, {started}, '-infinity') < now() - make_interval(secs => :lost_after)
  {without}
ORDER BY q.{key}
LIMIT :at_most
FOR UPDATE SKIP LOCKED
