-- one row: the job, if the attempt still holds it; nobody takes it away before the transaction ends
SELECT q.id
FROM background_jobs AS q
WHERE q.id = :id
  AND q.status = 'RUNNING'
  AND q.attempts = :attempt
  AND q.claimed_by = :owner
FOR SHARE
