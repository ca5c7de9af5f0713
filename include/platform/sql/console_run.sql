-- the row is one run with its preview, if it made one
SELECT
    r.dag_id, r.run_id, r.as_of, r.started_at, r.ended_at, r.state::text AS state, r.counts, r.notes, r.preview,
    r.params,
    p.made_at AS preview_made_at, p.as_of AS preview_as_of, p.result AS preview_result
FROM run_summary AS r
LEFT JOIN preview AS p ON p.dag_id = r.dag_id AND p.run_id = r.run_id
WHERE r.dag_id = :dag_id
  AND r.run_id = :run_id
