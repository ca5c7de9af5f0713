-- a row is the job of a run that no row was there for; one that is known adds none
INSERT INTO background_jobs (
    job_type, payload, created_by, company_id, priority, max_retries, timeout_seconds,
    heartbeat_interval_seconds, dag_run_id, as_of, dedupe_key
)
VALUES (
    :job_type, CAST(:payload AS jsonb), CAST(:created_by AS uuid), CAST(:company_id AS uuid), :priority,
    :max_retries, :timeout_seconds, :heartbeat_interval_seconds, :dag_run_id, CAST(:as_of AS timestamptz),
    :dag_run_id
)
ON CONFLICT DO NOTHING
