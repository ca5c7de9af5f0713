-- one row: the running job, as it was when it was looked at; one that another session holds is being worked on
SELECT q.*
FROM background_jobs AS q
WHERE q.id = :id
  AND q.status = 'RUNNING'
  AND q.dag_run_id IS NOT DISTINCT FROM CAST(:dag_run_id AS text)
  AND (q.health_status = 'STALE' OR NOT :only_stale)
FOR UPDATE SKIP LOCKED
