-- a row is an attempt of one task of a run
SELECT s.task_id, s.try_number, s.started_at, s.ended_at, s.state::text AS state, s.counts, s.notes, s.error
FROM run_step AS s
WHERE s.dag_id = :dag_id
  AND s.run_id = :run_id
ORDER BY s.started_at, s.task_id, s.try_number
LIMIT :limit
