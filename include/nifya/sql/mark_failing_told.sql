-- a row is an open job whose series' failures the operators were told of
UPDATE scheduled_jobs
SET failing_told = TRUE
WHERE id = ANY (CAST(:ids AS uuid[]))
  AND NOT failing_told
