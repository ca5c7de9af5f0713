-- a row is the latest run of a DAG that was no preview, or the latest preview where that is newer
SELECT r.dag_id, r.run_id, r.as_of, r.started_at, r.ended_at, r.state::text AS state, r.counts, r.notes, r.preview
FROM unnest(CAST(:dag_ids AS text[])) AS d (dag_id)
LEFT JOIN LATERAL (
    SELECT s.run_id, s.started_at
    FROM run_summary AS s
    WHERE s.dag_id = d.dag_id
      AND NOT s.preview
    ORDER BY s.started_at DESC, s.run_id DESC
    LIMIT 1
) AS done ON TRUE
LEFT JOIN LATERAL (
    SELECT s.run_id
    FROM run_summary AS s
    WHERE s.dag_id = d.dag_id
      AND s.preview
      AND s.started_at >= coalesce(done.started_at, '-infinity')
    ORDER BY s.started_at DESC, s.run_id DESC
    LIMIT 1
) AS looked ON TRUE
JOIN run_summary AS r ON r.dag_id = d.dag_id AND r.run_id IN (done.run_id, looked.run_id)
ORDER BY r.dag_id, r.preview
