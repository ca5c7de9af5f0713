-- one row with the id of the new job
INSERT INTO scheduled_jobs (type, data, schedule, next_run_at, created_by)
VALUES (:type, CAST(:data AS jsonb), CAST(:schedule AS jsonb), :next_run_at, :created_by)
RETURNING id
