-- a row is a preview's result
INSERT INTO preview (dag_id, run_id, made_at, as_of, result)
VALUES (:dag_id, :run_id, clock_timestamp(), :as_of, CAST(:result AS jsonb))
ON CONFLICT (dag_id, run_id) DO UPDATE
SET made_at = excluded.made_at,
    as_of = excluded.as_of,
    result = excluded.result
