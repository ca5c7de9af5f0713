-- a row is the entry of a job that has failed for good
INSERT INTO audit_logs (company_id, user_id, action_type, entity_type, entity_id, previous_values, new_values)
VALUES (
    CAST(:company_id AS uuid),
    NULL,
    'JOB_ERROR',
    'BACKGROUND_JOB',
    :job_id,
    CAST(:payload AS jsonb),
    jsonb_build_object(
        'error_name', CAST(:error_name AS text),
        'error_message', CAST(:error_message AS text),
        'error_stack', CAST(:error_stack AS text),
        'retry_count', CAST(:retry_count AS integer),
        'job_type', CAST(:job_type AS text),
        'context', CAST(:context AS jsonb)
    )
)
