-- a row is an entry of a company's audit log, the latest first
SELECT a.id, a.action_type, a.entity_type, a.entity_id, a.created_at, u.email AS by_email,
       coalesce(a.new_values ->> 'airflow_user', '') AS airflow_user,
       left(coalesce(a.new_values ->> 'reason', a.new_values ->> 'error_message', a.new_values ->> 'resolution', ''), 300)
           AS what
FROM audit_logs AS a
LEFT JOIN users AS u ON u.id = a.user_id
WHERE a.company_id = :company_id
ORDER BY a.created_at DESC, a.id DESC
LIMIT :limit
