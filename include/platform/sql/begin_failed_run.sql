-- a row is a run that failed before it could open its summary
INSERT INTO run_summary (dag_id, run_id, as_of, preview, started_at, state)
VALUES (:dag_id, :run_id, :as_of, false, clock_timestamp(), 'running')
ON CONFLICT (dag_id, run_id) DO NOTHING
