-- a row is a job that may be done in this run, now or once those before it are
SELECT q.job_type, q.payload, q.created_at
FROM job_queue AS q
WHERE q.status = 'pending'
  AND q.job_type = ANY (CAST(:types AS text[]))
  AND q.next_run_at <= least(now(), CAST(:not_after AS timestamptz))
ORDER BY q.created_at, q.id
