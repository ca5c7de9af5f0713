-- a row is a run that begins; one that is done over loses the steps of its earlier life
WITH earlier AS (
    DELETE FROM run_step
    WHERE dag_id = :dag_id
      AND run_id = :run_id
)
INSERT INTO run_summary AS r (dag_id, run_id, as_of, preview, params, started_at, state)
VALUES (:dag_id, :run_id, :as_of, :preview, CAST(:params AS jsonb), clock_timestamp(), 'running')
ON CONFLICT (dag_id, run_id) DO UPDATE
SET as_of = excluded.as_of,
    preview = excluded.preview,
    params = excluded.params,
    started_at = excluded.started_at,
    ended_at = NULL,
    state = 'running',
    counts = '{}',
    notes = '[]'
