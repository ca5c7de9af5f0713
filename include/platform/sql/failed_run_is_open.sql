-- one row that says whether a failed run's summary does not yet say so
SELECT EXISTS (
    SELECT 1
    FROM run_summary
    WHERE dag_id = :dag_id
      AND run_id = :run_id
      AND (ended_at IS NULL OR state <> 'failed')
)
