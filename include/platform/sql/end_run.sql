-- one row with the run's summary: the sum of what every attempt of its steps did
WITH totals AS (
    SELECT coalesce(jsonb_object_agg(name, total), '{}') AS counts
    FROM (
        SELECT c.key AS name, sum(c.value::numeric) AS total
        FROM run_step AS s, jsonb_each_text(s.counts) AS c
        WHERE s.dag_id = :dag_id
          AND s.run_id = :run_id
        GROUP BY c.key
    ) AS summed
),
said AS (
    SELECT coalesce(jsonb_agg(note ORDER BY first), '[]') AS notes
    FROM (
        SELECT n.value AS note, min(s.started_at) AS first
        FROM run_step AS s, jsonb_array_elements(s.notes) AS n
        WHERE s.dag_id = :dag_id
          AND s.run_id = :run_id
        GROUP BY n.value
    ) AS distinct_notes
),
last_attempts AS (
    SELECT DISTINCT ON (task_id) task_id, state
    FROM run_step
    WHERE dag_id = :dag_id
      AND run_id = :run_id
    ORDER BY task_id, try_number DESC
)
UPDATE run_summary AS r
SET counts = totals.counts,
    notes = said.notes,
    ended_at = clock_timestamp(),
    state = coalesce(
        CAST(:state AS text),
        (
            SELECT a.state
            FROM last_attempts AS a
            ORDER BY array_position(ARRAY['failed', 'deferred', 'skipped', 'success', 'running'], a.state)
            LIMIT 1
        ),
        'success'
    )
FROM totals, said
WHERE r.dag_id = :dag_id
  AND r.run_id = :run_id
RETURNING r.as_of, r.state, r.counts, r.notes,
          extract(epoch FROM r.ended_at - r.started_at) AS duration
