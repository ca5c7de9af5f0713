-- a row is a run of a DAG that has a summary, among those that are asked about
SELECT r.run_id
FROM run_summary AS r
WHERE r.dag_id = :dag_id
  AND r.run_id = ANY (CAST(:run_ids AS text[]))
