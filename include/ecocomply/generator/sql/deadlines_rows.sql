-- a row is one of an obligation's due dates around today: its base date plus whole periods
INSERT INTO deadlines (
    id, company_id, site_id, obligation_id, schedule_id, due_date, status, compliance_period_start,
    compliance_period_end, completed_at, completed_by, sla_target_date, created_at, updated_at
)
SELECT md5('deadline' || o.id || place.due)::uuid, o.company_id, o.site_id, o.id, md5('schedule' || o.id)::uuid,
       place.due,
       CASE WHEN fate.done THEN 'COMPLETED'
            WHEN place.due < pg_temp.today() THEN 'OVERDUE'
            WHEN place.due <= pg_temp.today() + 3 THEN 'DUE_SOON'
            ELSE 'PENDING' END,
       place.before + 1, place.due,
       CASE WHEN fate.done THEN pg_temp.at(least(place.due - 3 + fate.late, pg_temp.today() - 1), 15) END,
       CASE WHEN fate.done THEN o.assigned_to END,
       CASE WHEN fate.late % 3 = 0 THEN place.due - 5 END,
       pg_temp.at(least(place.due - 40, pg_temp.today() - 1), 1), pg_temp.at(least(place.due, pg_temp.today() - 1), 1)
FROM generate_series(1, pg_temp.obligations()) AS n
JOIN obligations AS o ON o.id = pg_temp.make_id('obligation', n)
JOIN (VALUES
    ('DAILY', interval '1 day', 1.0, 2), ('WEEKLY', interval '7 days', 7.0, 2), ('MONTHLY', interval '1 month', 30.44, 2),
    ('QUARTERLY', interval '3 months', 91.31, 2), ('ANNUAL', interval '1 year', 365.25, 1)
) AS period (frequency, span, days, back) ON period.frequency = o.frequency
CROSS JOIN LATERAL (SELECT floor((pg_temp.today() - o.base_date) / period.days)::integer AS present) AS now
CROSS JOIN LATERAL generate_series(greatest(now.present - period.back, 1), now.present + 1) AS k
CROSS JOIN LATERAL (
    SELECT (o.base_date + k * period.span)::date AS due, (o.base_date + (k - 1) * period.span)::date AS before
) AS place
CROSS JOIN LATERAL (
    SELECT place.due < pg_temp.today() AND pg_temp.roll('done', 100 * n::bigint + k, 12) > 0 AS done,
           pg_temp.roll('late', 100 * n::bigint + k, 7) AS late
) AS fate
UNION ALL
SELECT md5('deadline' || o.id || once.due)::uuid, o.company_id, o.site_id, o.id, md5('schedule' || o.id)::uuid, once.due,
       CASE WHEN once.due < pg_temp.today() THEN 'COMPLETED' ELSE 'PENDING' END, NULL, once.due,
       CASE WHEN once.due < pg_temp.today() THEN pg_temp.at(once.due, 12) END, NULL, NULL,
       o.created_at, o.updated_at
FROM generate_series(1, pg_temp.obligations()) AS n
JOIN obligations AS o ON o.id = pg_temp.make_id('obligation', n) AND o.frequency = 'ONE_TIME'
CROSS JOIN LATERAL (SELECT o.base_date AS due) AS once
