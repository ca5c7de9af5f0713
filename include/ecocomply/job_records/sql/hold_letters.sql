-- a row is an open dead letter, held against another person's decision
SELECT d.id, d.job_id
FROM dead_letter_queue AS d
WHERE d.id = ANY (CAST(:ids AS uuid[]))
  AND d.resolved_at IS NULL
ORDER BY d.id
FOR UPDATE
