-- one row, held until the end of the transaction, with a job's status and whether it recurs and waits for its time
SELECT j.id,
       j.status,
       j.schedule IS NOT NULL
           AND jsonb_typeof(j.schedule) <> 'null'
           AND j.retry_at IS NULL
           AND j.next_run_at > now() AS is_ahead
FROM scheduled_jobs AS j
WHERE j.id = :job_id
FOR UPDATE
