-- a row is a waiting job that names the run that is started for it; another dispatcher may have been there first
UPDATE background_jobs AS q
SET dag_run_id = :dag_run_id,
    as_of = coalesce(q.as_of, CAST(:as_of AS timestamptz)),
    updated_at = clock_timestamp()
WHERE q.id = :id
  AND q.status = 'PENDING'
  AND q.dag_run_id IS NOT DISTINCT FROM CAST(:named_before AS text)
