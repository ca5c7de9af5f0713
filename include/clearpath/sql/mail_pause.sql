-- one row if the queue waits for the provider, with the instant until which it does
SELECT paused_until, pause_reason
FROM jobs_state
WHERE job_name = :name
  AND paused_until > now()
ORDER BY paused_until DESC
LIMIT 1
