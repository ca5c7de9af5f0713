-- a row is what the audit log has of a job, the latest first
SELECT a.action_type, a.created_at, a.new_values ->> 'airflow_user' AS airflow_user,
       a.new_values ->> 'resolution' AS resolution, a.new_values ->> 'notes' AS notes,
       a.new_values ->> 'error_message' AS error
FROM audit_logs AS a
WHERE a.entity_id = :job_id
  AND a.entity_type = 'BACKGROUND_JOB'
ORDER BY a.created_at DESC, a.id DESC
LIMIT :limit
