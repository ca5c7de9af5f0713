-- a row is a type and a status of jobs made in the last 24 hours: how many, and their attempts on average
SELECT q.job_type,
       q.status::text AS status,
       count(*) AS jobs,
       avg(q.attempts) AS avg_attempts
FROM job_queue AS q
WHERE q.created_at > now() - interval '24 hours'
GROUP BY q.job_type, q.status
ORDER BY q.job_type, q.status::text
