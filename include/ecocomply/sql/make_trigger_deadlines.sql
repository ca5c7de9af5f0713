-- a row is a deadline that a rule makes; one that the obligation has on that day already stays as it is
INSERT INTO deadlines (
    company_id, site_id, obligation_id, schedule_id, due_date, status, compliance_period_start, compliance_period_end
)
SELECT o.company_id, o.site_id, o.id, s.id, f.due_date, t.status,
       coalesce(
           f.previous,
           (SELECT max(d.due_date) FROM deadlines AS d WHERE d.obligation_id = o.id AND d.due_date < f.due_date)
       ) + 1,
       f.due_date
FROM jsonb_to_recordset(CAST(:firings AS jsonb)) AS f (
    company_id uuid, obligation_id uuid, due_date date, previous date, target text, result text
)
JOIN obligations AS o ON o.id = f.obligation_id AND o.company_id = f.company_id
LEFT JOIN schedules AS s ON s.obligation_id = o.id
-- an application may have enum types of its own for these words
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::deadlines,
    jsonb_build_object('status', CASE
        WHEN f.due_date < CAST(:today AS date) THEN 'OVERDUE'
        WHEN f.due_date <= CAST(:today AS date) + 3 THEN 'DUE_SOON'
        ELSE 'PENDING'
    END)
) AS t
WHERE f.target = 'DEADLINE'
  AND f.result = 'SUCCESS'
ORDER BY o.id, f.due_date
ON CONFLICT (obligation_id, due_date) DO NOTHING
