-- a row is a job that is running by its row
SELECT q.id, q.dag_run_id, q.health_status::text AS health_status,
       coalesce(q.heartbeat_at, q.last_heartbeat, q.started_at, '-infinity')
           < now() - make_interval(secs => :lost_after) AS is_silent
FROM background_jobs AS q
WHERE q.status = 'RUNNING'
ORDER BY q.id
