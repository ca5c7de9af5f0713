-- a row is one attempt of one task with what it did
INSERT INTO run_step (
    dag_id, run_id, task_id, try_number, started_at, ended_at, state, counts, notes, error
)
VALUES (
    :dag_id, :run_id, :task_id, :try_number, :started_at, clock_timestamp(), :state,
    CAST(:counts AS jsonb), CAST(:notes AS jsonb), :error
)
ON CONFLICT (dag_id, run_id, task_id, try_number) DO UPDATE
SET started_at = excluded.started_at,
    ended_at = excluded.ended_at,
    state = excluded.state,
    counts = excluded.counts,
    notes = excluded.notes,
    error = excluded.error
