-- a row is a job of the pipeline
SELECT q.id, q.payload
FROM job_queue AS q
WHERE q.id = CAST(:job AS uuid)
