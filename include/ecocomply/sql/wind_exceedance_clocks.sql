-- a row is the clock of what a generator exceeded, until the year or the month ends
INSERT INTO compliance_clocks_universal AS c (
    company_id, site_id, module_id, entity_type, entity_id, clock_type, target_date, days_remaining, status,
    criticality, reminder_days, metadata
)
SELECT e.company_id, e.site_id, (SELECT m.id FROM modules AS m WHERE m.module_code = 'MODULE_3'), 'generator',
       e.entity_id, e.clock_type, CAST(:today AS date), 0,
       CASE
           -- the column's type for the words, which may be an enum
           WHEN false THEN (NULL::compliance_clocks_universal).status
           WHEN e.window_end < CAST(:today AS date) THEN 'COMPLETED'
           ELSE 'ACTIVE'
       END,
       -- people are told by the exceedance itself
       'RED', '{}', e.metadata
FROM jsonb_to_recordset(CAST(:clocks AS jsonb)) AS e (
    company_id uuid, site_id uuid, entity_id uuid, clock_type text, window_end date, metadata jsonb
)
ORDER BY e.entity_id, e.clock_type
ON CONFLICT (entity_type, entity_id, clock_type) DO UPDATE
SET target_date = EXCLUDED.target_date,
    days_remaining = 0,
    status = 'ACTIVE',
    criticality = 'RED',
    module_id = EXCLUDED.module_id,
    reminder_days = EXCLUDED.reminder_days,
    -- of two windows that the same clock is for, the one that ends last
    metadata = EXCLUDED.metadata || jsonb_build_object(
        'window_end',
        CASE
            WHEN c.status = 'COMPLETED' THEN EXCLUDED.metadata ->> 'window_end'
            ELSE greatest(c.metadata ->> 'window_end', EXCLUDED.metadata ->> 'window_end')
        END
    ),
    updated_at = clock_timestamp()
-- a run of a window that has ended winds up nothing; nor does one before the run that the clock knows
WHERE EXCLUDED.status = 'ACTIVE'
  AND (c.status = 'COMPLETED' OR coalesce(c.metadata ->> 'run_date', '') <= EXCLUDED.metadata ->> 'run_date')
