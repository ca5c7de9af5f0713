-- a row is how many schedules and deadlines are made, and dates moved, for some obligations
WITH period (frequency, months, days) AS (
    VALUES ('DAILY', 0, 1), ('WEEKLY', 0, 7), ('MONTHLY', 1, 0), ('QUARTERLY', 3, 0), ('ANNUAL', 12, 0),
           ('ONE_TIME', 0, 0)
),
-- each with its places in its series: of the next date, of the first since it was created, and of the first too far
-- ahead. Place 0 is the base date, which is a due date only of what is due once
placed AS MATERIALIZED (
    SELECT o.id, o.company_id, o.site_id, o.frequency, o.base_date, o.deadline_date, s.id AS schedule_id, p.months, p.days,
           place.next, place.since, place.beyond,
           CAST(o.base_date + make_interval(months => place.next * p.months, days => place.next * p.days) AS date) AS due
    FROM obligations AS o
    JOIN period AS p ON p.frequency = CAST(o.frequency AS text)
    LEFT JOIN schedules AS s ON s.obligation_id = o.id
    CROSS JOIN LATERAL (
        SELECT max(d.due_date) AS due_date FROM deadlines AS d WHERE d.obligation_id = o.id AND d.status = 'COMPLETED'
    ) AS completed
    CROSS JOIN LATERAL (
        SELECT max(first.place) FILTER (WHERE mark.what = 'completed') AS next,
               max(first.place) FILTER (WHERE mark.what = 'created') AS since,
               max(first.place) FILTER (WHERE mark.what = 'ahead') AS beyond
        FROM (VALUES
            ('completed', coalesce(completed.due_date, o.base_date - 1)),
            ('created', CAST(o.created_at AT TIME ZONE 'UTC' AS date) - 1),
            ('ahead', CAST(:today AS date) + CAST(:ahead AS integer))
        ) AS mark (what, day)
        CROSS JOIN LATERAL (
            SELECT CAST(
                12 * (extract(year FROM mark.day) - extract(year FROM o.base_date))
                + extract(month FROM mark.day) - extract(month FROM o.base_date) AS integer
            ) AS months
        ) AS apart
        -- the first place whose date is after the mark's day
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN mark.day < o.base_date THEN CASE WHEN p.months + p.days = 0 THEN 0 ELSE 1 END
                WHEN p.days > 0 THEN (mark.day - o.base_date) / p.days + 1
                WHEN p.months > 0 THEN greatest(
                    apart.months / p.months
                    + CASE
                        WHEN o.base_date + make_interval(months => apart.months / p.months * p.months) > mark.day
                            THEN 0
                        ELSE 1
                    END,
                    1
                )
                ELSE 1
            END AS place
        ) AS first
    ) AS place
    WHERE o.id = ANY (CAST(:ids AS uuid[]))
      AND o.status <> 'NOT_APPLICABLE'
      AND o.deleted_at IS NULL
      AND o.base_date IS NOT NULL
      AND NOT (o.frequency = 'ONE_TIME' AND o.status = 'COMPLETED')
      -- what is due once, and done, has no next date
      AND NOT (p.months + p.days = 0 AND place.next > 0)
),
moving AS MATERIALIZED (
    SELECT o.id, f.due
    FROM placed AS f
    JOIN obligations AS o ON o.id = f.id
    WHERE o.deadline_date IS DISTINCT FROM f.due
      AND o.base_date = f.base_date
      AND o.frequency = f.frequency
    ORDER BY o.id
    FOR NO KEY UPDATE OF o
),
moved AS (
    UPDATE obligations AS o
    SET deadline_date = m.due,
        updated_at = clock_timestamp()
    FROM moving AS m
    WHERE o.id = m.id
    RETURNING o.id
),
scheduled AS (
    INSERT INTO schedules (company_id, obligation_id, frequency, base_date, next_due_date, status)
    SELECT f.company_id, f.id,
           -- the column's type for the words, which may be another enum than the obligation's
           CASE CAST(f.frequency AS text)
               WHEN 'DAILY' THEN 'DAILY'
               WHEN 'WEEKLY' THEN 'WEEKLY'
               WHEN 'MONTHLY' THEN 'MONTHLY'
               WHEN 'QUARTERLY' THEN 'QUARTERLY'
               WHEN 'ANNUAL' THEN 'ANNUAL'
               WHEN 'ONE_TIME' THEN 'ONE_TIME'
               ELSE (NULL::schedules).frequency
           END,
           f.base_date, f.due, 'ACTIVE'
    FROM placed AS f
    WHERE f.schedule_id IS NULL
    ORDER BY f.id
    ON CONFLICT (obligation_id) DO NOTHING
    RETURNING id, obligation_id
),
wanted AS (
    SELECT f.*, k.place,
           CAST(f.base_date + make_interval(months => k.place * f.months, days => k.place * f.days) AS date) AS day
    FROM placed AS f
    CROSS JOIN LATERAL (
        SELECT f.next AS place WHERE f.next < f.since AND f.next < f.beyond
        UNION ALL
        SELECT generate_series(greatest(f.next, f.since), f.beyond - 1)
    ) AS k
),
made AS (
    INSERT INTO deadlines (
        company_id, site_id, obligation_id, schedule_id, due_date, status, compliance_period_start,
        compliance_period_end
    )
    SELECT w.company_id, w.site_id, w.id, coalesce(w.schedule_id, s.id), w.day, 'PENDING',
           CASE WHEN w.place > 0 THEN
               CAST(
                   w.base_date
                   + make_interval(months => (w.place - 1) * w.months, days => (w.place - 1) * w.days) AS date
               ) + 1
           END,
           w.day
    FROM wanted AS w
    LEFT JOIN scheduled AS s ON s.obligation_id = w.id
    WHERE NOT EXISTS (SELECT FROM deadlines AS d WHERE d.obligation_id = w.id AND d.due_date = w.day)
    ORDER BY w.id, w.day
    ON CONFLICT (obligation_id, due_date) DO NOTHING
    RETURNING id
)
SELECT (SELECT count(*) FROM scheduled) AS schedules_created,
       (SELECT count(*) FROM made) AS deadlines_created,
       (SELECT count(*) FROM moved) AS deadline_dates_updated
