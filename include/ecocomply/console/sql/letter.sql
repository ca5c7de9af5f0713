-- one row: a dead letter with its job as it is now
SELECT d.id, d.job_id, d.company_id, c.name AS company_name, d.error_message, d.error_stack, d.error_context,
       d.retry_count, d.last_attempted_at, d.created_at, d.resolved_at, d.resolution::text AS resolution,
       d.resolved_by_airflow_user, u.email AS resolved_by_email, d.resolution_notes,
       q.job_type, q.status::text AS job_status, q.scheduled_for, q.attempts, q.completed_at, q.started_at,
       q.dag_run_id, q.payload, q.error_message AS job_error
FROM dead_letter_queue AS d
JOIN background_jobs AS q ON q.id = d.job_id
LEFT JOIN companies AS c ON c.id = d.company_id
LEFT JOIN users AS u ON u.id = d.resolved_by
WHERE d.id = :id
