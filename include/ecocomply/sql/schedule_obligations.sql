-- a row is how many schedules and deadlines are made, dates moved, and deadlines of a former series retired or restored
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
-- of another series than their schedule says; what a rule has set is the rule's
changed AS MATERIALIZED (
    SELECT f.*, s.base_date AS old_base_date, p.months AS old_months, p.days AS old_days
    FROM placed AS f
    JOIN schedules AS s ON s.id = f.schedule_id
    JOIN period AS p ON p.frequency = CAST(s.frequency AS text)
    WHERE s.base_date BETWEEN DATE '1900-01-01' AND DATE '2999-12-31'
      AND (s.base_date <> f.base_date OR CAST(s.frequency AS text) <> CAST(f.frequency AS text))
      AND NOT EXISTS (SELECT FROM recurrence_trigger_executions AS e WHERE e.schedule_id = s.id)
    ORDER BY s.id
    FOR NO KEY UPDATE OF s
),
-- their deadlines ahead: of the former series alone, or of the present one and given up with an earlier change
affected AS MATERIALIZED (
    SELECT d.id, c.schedule_id, fits.present
    FROM changed AS c
    JOIN deadlines AS d ON d.obligation_id = c.id
    CROSS JOIN LATERAL (
        SELECT bool_or(of_day.fits) FILTER (WHERE series.which = 'former') AS former,
               bool_or(of_day.fits) FILTER (WHERE series.which = 'present') AS present
        FROM (VALUES
            ('former', c.old_base_date, c.old_months, c.old_days),
            ('present', c.base_date, c.months, c.days)
        ) AS series (which, base_date, months, days)
        CROSS JOIN LATERAL (
            SELECT CAST(
                12 * (extract(year FROM d.due_date) - extract(year FROM series.base_date))
                + extract(month FROM d.due_date) - extract(month FROM series.base_date) AS integer
            ) AS months
        ) AS apart
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN series.days > 0 THEN d.due_date > series.base_date AND (d.due_date - series.base_date) % series.days = 0
                WHEN series.months > 0 THEN
                    apart.months > 0
                    AND apart.months % series.months = 0
                    AND series.base_date + make_interval(months => apart.months) = d.due_date
                ELSE d.due_date = series.base_date
            END AS fits
        ) AS of_day
    ) AS fits
    WHERE d.due_date > CAST(:today AS date)
      AND d.due_date <= CAST(:today AS date) + 36525
      AND d.completed_at IS NULL
      AND NOT d.breach_notification_sent
      -- as it was made, and not moved by anybody since
      AND d.compliance_period_end = d.due_date
      AND (
          (
              d.status IN ('PENDING', 'DUE_SOON')
              AND d.schedule_id = c.schedule_id
              AND fits.former
              AND NOT fits.present
              AND NOT EXISTS (SELECT FROM recurrence_trigger_executions AS e WHERE e.deadline_id = d.id)
          )
          OR (d.status = 'NOT_APPLICABLE' AND d.schedule_id IS NULL AND fits.present)
      )
    ORDER BY d.id
    FOR NO KEY UPDATE OF d
),
retired AS (
    UPDATE deadlines AS d
    SET status = 'NOT_APPLICABLE',
        -- tells it from what a person has said does not apply
        schedule_id = NULL,
        updated_at = clock_timestamp()
    FROM affected AS a
    WHERE d.id = a.id
      AND NOT a.present
    RETURNING d.id
),
restored AS (
    UPDATE deadlines AS d
    SET status = 'PENDING',
        schedule_id = a.schedule_id,
        updated_at = clock_timestamp()
    FROM affected AS a
    WHERE d.id = a.id
      AND a.present
    RETURNING d.id
),
rescheduled AS (
    UPDATE schedules AS s
    SET base_date = c.base_date,
        frequency = t.frequency,
        updated_at = clock_timestamp()
    FROM changed AS c
    -- the column's type for the word
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::schedules, jsonb_build_object('frequency', c.frequency)
    ) AS t
    WHERE s.id = c.schedule_id
    RETURNING s.id
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
       (SELECT count(*) FROM moved) AS deadline_dates_updated,
       (SELECT count(*) FROM retired) AS deadlines_retired,
       (SELECT count(*) FROM restored) AS deadlines_restored
