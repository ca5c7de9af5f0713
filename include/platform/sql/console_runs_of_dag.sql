-- a row is a run of one DAG, the latest first
SELECT r.dag_id, r.run_id, r.as_of, r.started_at, r.ended_at, r.state::text AS state, r.counts, r.notes, r.preview
FROM run_summary AS r
WHERE r.dag_id = :dag_id
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (r.started_at, r.run_id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS text))
  )
ORDER BY r.started_at DESC, r.run_id DESC
LIMIT :limit
