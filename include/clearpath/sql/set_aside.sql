-- a row is a record that can't be saved as it is, with the reason why
INSERT INTO lab_set_aside AS l (lab_record_key, reason_code, reason, excerpt, record, last_tried_at)
SELECT a.key, a.code, a.reason, a.excerpt, a.record::jsonb, clock_timestamp()
FROM unnest(
    CAST(:keys AS text[]), CAST(:codes AS text[]), CAST(:reasons AS text[]),
    CAST(:excerpts AS text[]), CAST(:records AS text[])
) AS a (key, code, reason, excerpt, record)
ON CONFLICT (lab_record_key) DO UPDATE
SET reason_code = excluded.reason_code,
    reason = excluded.reason,
    excerpt = excluded.excerpt,
    record = excluded.record,
    last_tried_at = clock_timestamp(),
    tries = l.tries + 1
WHERE l.resolved_at IS NULL
