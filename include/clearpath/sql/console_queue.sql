-- the row says until when the mail queue is paused, and why
SELECT s.paused_until, s.pause_reason
FROM jobs_state AS s
WHERE s.job_name = :job
  AND s.paused_until > :now
