-- a row is a job that is tried again, with the instant of its turn: after those that have one already
WITH plan AS MATERIALIZED (
    -- one instant for all: the clock goes on while rows are changed
    SELECT greatest(clock_timestamp(), max(q.scheduled_for) + make_interval(secs => :seconds)) AS first
    FROM dead_letter_queue AS d
    JOIN background_jobs AS q ON q.id = d.job_id
    WHERE d.resolution = 'RETRIED'
      AND d.resolved_at > now() - interval '1 day'
      AND d.resolved_by_airflow_user IS NOT NULL
      AND d.id <> ALL (CAST(:ids AS uuid[]))
),
turns AS (
    SELECT d.job_id, row_number() OVER (ORDER BY d.created_at, d.id) - 1 AS turn
    FROM dead_letter_queue AS d
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
)
UPDATE background_jobs AS q
SET scheduled_for = p.first + t.turn * make_interval(secs => :seconds),
    updated_at = clock_timestamp()
FROM turns AS t
CROSS JOIN plan AS p
WHERE q.id = t.job_id
  AND q.status = 'PENDING'
RETURNING q.scheduled_for
