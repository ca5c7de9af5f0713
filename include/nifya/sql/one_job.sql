-- one row with a scheduled job, or none
SELECT j.id, j.type, j.data, j.schedule, j.status, j.next_run_at, j.last_run_at, j.created_at, j.updated_at,
       j.created_by, j.error, j.series_id, j.recurrence_ended, j.attempts, j.retry_at, j.finished_at,
       j.failures_in_row
FROM scheduled_jobs AS j
WHERE j.id = :job_id
