-- a row is something that operators are told, once a cause
INSERT INTO alert (cause, kind, subject, body, dag_id, run_id, task_id, delivered_at, last_error)
VALUES (
    :cause, :kind, :subject, :body, :dag_id, :run_id, :task_id,
    CASE WHEN :told_elsewhere THEN clock_timestamp() END,
    CASE WHEN :told_elsewhere THEN 'told by the alert of the outage' END
)
ON CONFLICT (cause) DO NOTHING
