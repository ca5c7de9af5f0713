-- a row is a job of whose series' end the operators were told
UPDATE scheduled_jobs
SET ending_told = TRUE
WHERE id = ANY (CAST(:ids AS uuid[]))
  AND NOT ending_told
