-- a row is a lab's record by its place in the chunk, with what became of it and its session's status before
WITH input AS (
    SELECT *
    FROM unnest(
        CAST(:lab_ids AS text[]), CAST(:orders AS text[]), CAST(:serials AS text[]),
        CAST(:values AS numeric[]), CAST(:below AS boolean[]), CAST(:reported_values AS text[]),
        CAST(:reported_units AS text[]), CAST(:measured AS timestamptz[])
    ) WITH ORDINALITY AS i (
        lab_id, order_id, serial, value_bq_m3, below_detection, reported_value, reported_unit, measured_at, n
    )
),
matched AS (
    SELECT i.n, count(s.id) AS sessions, min(s.id::text)::uuid AS session_id
    FROM input AS i
    LEFT JOIN LATERAL (
        SELECT t.id FROM test_sessions AS t WHERE t.clearpath_order_id = i.order_id
        UNION
        SELECT t.id FROM test_sessions AS t WHERE t.kit_serial_number = i.serial
    ) AS s ON true
    GROUP BY i.n
),
locked AS (
    SELECT s.id, s.status::text AS status
    FROM test_sessions AS s
    WHERE s.id IN (SELECT m.session_id FROM matched AS m WHERE m.sessions = 1)
    ORDER BY s.id
    FOR UPDATE
),
judged AS (
    SELECT i.*, m.session_id, l.status,
           CASE
               WHEN EXISTS (SELECT 1 FROM results AS r WHERE r.lab_record_id = i.lab_id) THEN 'duplicate'
               WHEN m.sessions = 0 THEN 'unmatched'
               WHEN m.sessions > 1 THEN 'ambiguous'
               WHEN EXISTS (SELECT 1 FROM results AS r WHERE r.test_session_id = m.session_id) THEN 'duplicate'
               WHEN l.status NOT IN ('mailed', 'results_pending') THEN 'not_waiting'
               WHEN row_number() OVER (PARTITION BY m.session_id ORDER BY i.n) > 1 THEN 'duplicate'
               ELSE 'saved'
           END AS outcome
    FROM input AS i
    JOIN matched AS m ON m.n = i.n
    LEFT JOIN locked AS l ON m.sessions = 1 AND l.id = m.session_id
),
saved AS (
    INSERT INTO results (
        test_session_id, value_bq_m3, below_detection, reported_value, reported_unit, source, lab_record_id, measured_at
    )
    SELECT session_id, value_bq_m3, below_detection, reported_value, reported_unit, :source, lab_id, measured_at
    FROM judged
    WHERE outcome = 'saved'
    ON CONFLICT DO NOTHING
    RETURNING test_session_id
),
completed AS (
    UPDATE test_sessions AS s
    SET status = 'complete',
        completed_at = clock_timestamp(),
        updated_at = clock_timestamp()
    FROM saved
    WHERE s.id = saved.test_session_id
    RETURNING s.id
),
cancelled AS (
    UPDATE email_log AS e
    SET status = 'cancelled',
        status_reason = 'result saved on ' || CAST(:issued_on AS date),
        updated_at = clock_timestamp()
    FROM saved
    WHERE e.test_session_id = saved.test_session_id
      AND e.email_type::text = ANY (CAST(:reminders AS text[]))
      AND (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
),
certified AS (
    INSERT INTO certificates (test_session_id, certificate_number, status, issued_on, valid_until)
    SELECT test_session_id,
           'CP-' || to_char(CAST(:issued_on AS date), 'YYYY') || '-'
               || upper(substr(md5(test_session_id::text), 1, 10)),
           'valid', CAST(:issued_on AS date), CAST(:valid_until AS date)
    FROM saved
    ON CONFLICT DO NOTHING
)
SELECT j.n::integer AS n,
       CASE WHEN j.outcome = 'saved' AND v.test_session_id IS NULL THEN 'duplicate' ELSE j.outcome END AS outcome,
       j.status AS session_status
FROM judged AS j
LEFT JOIN saved AS v ON v.test_session_id = j.session_id AND j.outcome = 'saved'
ORDER BY j.n
