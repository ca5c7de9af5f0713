-- a row is a job whose series ended, that the operators will be told of, with what under
UPDATE scheduled_jobs
SET ending_cause = :cause
WHERE id = ANY (CAST(:ids AS uuid[]))
  AND ending_cause IS NULL
