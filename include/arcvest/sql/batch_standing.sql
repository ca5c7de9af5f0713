-- a row is a status that jobs of a batch have, with how many have it
SELECT q.status::text AS status, count(*) AS jobs
FROM job_queue AS q
WHERE q.correlation_id = CAST(:correlation AS uuid)
GROUP BY q.status
ORDER BY q.status::text
