-- a row is the number of ideas that a job has selected; of a claim that was taken away there is none
SELECT (SELECT count(*) FROM idea_queue AS i WHERE i.selected_by_job_id = q.id) AS ideas
FROM job_queue AS q
WHERE q.id = CAST(:job AS uuid)
  AND q.status = 'processing'
  AND q.attempts = :attempt
  AND q.claimed_by = :owner
