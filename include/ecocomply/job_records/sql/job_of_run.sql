-- one row: the job of a run, of several the one since its latest clearing
SELECT q.*
FROM background_jobs AS q
WHERE q.dag_run_id = ANY (CAST(:keys AS text[]))
ORDER BY array_position(CAST(:keys AS text[]), q.dag_run_id) DESC, q.created_at DESC, q.id
LIMIT 1
FOR UPDATE
