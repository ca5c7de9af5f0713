-- a row is an obligation's one schedule that a rule makes or moves; of several firings the latest date holds
INSERT INTO schedules (company_id, obligation_id, frequency, base_date, next_due_date, status)
SELECT DISTINCT ON (o.id) o.company_id, o.id, t.frequency, coalesce(f.base_date, f.due_date), f.due_date, t.status
FROM jsonb_to_recordset(CAST(:firings AS jsonb)) AS f (
    rule uuid, company_id uuid, obligation_id uuid, due_date date, base_date date, frequency text, target text, result text
)
JOIN obligations AS o ON o.id = f.obligation_id AND o.company_id = f.company_id
-- an application may have enum types of its own for these words
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::schedules, jsonb_build_object('frequency', f.frequency, 'status', 'ACTIVE')
) AS t
WHERE f.target = 'SCHEDULE'
  AND f.result = 'SUCCESS'
ORDER BY o.id, f.due_date DESC, f.rule
ON CONFLICT (obligation_id) DO UPDATE
SET frequency = excluded.frequency,
    base_date = excluded.base_date,
    next_due_date = excluded.next_due_date,
    status = excluded.status,
    updated_at = clock_timestamp()
WHERE (schedules.frequency, schedules.base_date, schedules.next_due_date, schedules.status)
    IS DISTINCT FROM (excluded.frequency, excluded.base_date, excluded.next_due_date, excluded.status)
