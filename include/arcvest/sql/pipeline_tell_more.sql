-- a row says that more jobs of the pipeline are due: who listens starts the next run
SELECT pg_notify(:channel, '')
WHERE EXISTS (
    SELECT FROM job_queue AS q
    WHERE q.job_type = :job_type AND q.status = 'pending' AND q.next_run_at <= clock_timestamp()
)
