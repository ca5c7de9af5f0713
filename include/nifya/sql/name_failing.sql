-- a row is an open job that the operators will be told of, with what under
UPDATE scheduled_jobs
SET failing_cause = :cause
WHERE id = ANY (CAST(:ids AS uuid[]))
  AND failing_cause IS NULL
