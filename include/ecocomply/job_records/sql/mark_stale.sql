-- a row is a job that nobody has been heard of for too long; one that another session holds is alive
WITH silent AS MATERIALIZED (
    SELECT q.id
    FROM background_jobs AS q
    WHERE q.id = ANY (CAST(:ids AS uuid[]))
      AND q.status = 'RUNNING'
      AND q.health_status <> 'STALE'
      AND coalesce(q.heartbeat_at, q.last_heartbeat, q.started_at, '-infinity')
          < now() - make_interval(secs => :lost_after)
    ORDER BY q.id
    FOR UPDATE SKIP LOCKED
)
UPDATE background_jobs AS q
SET health_status = 'STALE',
    updated_at = clock_timestamp()
FROM silent
WHERE q.id = silent.id
