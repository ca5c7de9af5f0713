-- a row is how many definitions went on to their next date, and how many tasks were made of them
WITH period (frequency, months, days) AS (
    VALUES ('DAILY', 0, 1), ('WEEKLY', 0, 7), ('MONTHLY', 1, 0), ('QUARTERLY', 3, 0), ('ANNUAL', 12, 0)
),
due AS MATERIALIZED (
    SELECT r.id, r.company_id, r.site_id, r.title, r.description, r.default_assignee_id, p.months, p.days,
           coalesce(r.next_due_date, CAST(:today AS date)) AS start,
           -- kept from the first time on, so that the 31st comes back after February
           coalesce(r.anchor_date, r.next_due_date, CAST(:today AS date)) AS anchor
    FROM recurring_tasks AS r
    JOIN period AS p ON p.frequency = CAST(r.frequency AS text)
    WHERE r.id = ANY (CAST(:ids AS uuid[]))
      AND r.is_active
      AND (r.next_due_date IS NULL OR r.next_due_date BETWEEN DATE '1900-01-01' AND CAST(:today AS date))
      AND (r.anchor_date BETWEEN DATE '1900-01-01' AND DATE '2999-12-31') IS NOT FALSE
    ORDER BY r.id
    FOR NO KEY UPDATE OF r
),
-- the places in the series of the first date after the start (what was missed before the adoption makes nothing), and of
-- the first that is left: still to come, or too many for one run
placed AS (
    SELECT d.*, place.after_start, least(place.to_come, place.after_start + CAST(:most AS integer) - 1) AS to_come
    FROM due AS d
    CROSS JOIN LATERAL (
        SELECT max(first.place) FILTER (WHERE mark.what = 'start') AS after_start,
               max(first.place) FILTER (WHERE mark.what = 'today') AS to_come
        FROM (VALUES
            ('start', greatest(d.start, (SELECT a.day FROM adoption AS a) - 1)),
            ('today', CAST(:today AS date))
        ) AS mark (what, day)
        CROSS JOIN LATERAL (
            SELECT CAST(
                12 * (extract(year FROM mark.day) - extract(year FROM d.anchor))
                + extract(month FROM mark.day) - extract(month FROM d.anchor) AS integer
            ) AS months
        ) AS apart
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN mark.day < d.anchor THEN 0
                WHEN d.days > 0 THEN (mark.day - d.anchor) / d.days + 1
                ELSE apart.months / d.months
                    + CASE
                        WHEN d.anchor + make_interval(months => apart.months / d.months * d.months) > mark.day THEN 0
                        ELSE 1
                    END
            END AS place
        ) AS first
    ) AS place
),
made AS (
    INSERT INTO tasks (company_id, site_id, recurring_task_id, title, description, due_date, assigned_to)
    SELECT p.company_id, p.site_id, p.id, p.title, p.description, dates.day, p.default_assignee_id
    FROM placed AS p
    CROSS JOIN LATERAL (
        SELECT p.start AS day
        UNION ALL
        SELECT CAST(p.anchor + make_interval(months => k * p.months, days => k * p.days) AS date)
        FROM generate_series(p.after_start, p.to_come - 1) AS k
    ) AS dates
    -- what was missed before the adoption is history
    WHERE dates.day >= (SELECT a.day FROM adoption AS a)
    ORDER BY p.id, dates.day
    ON CONFLICT (recurring_task_id, due_date) DO NOTHING
    RETURNING id
),
moved AS (
    UPDATE recurring_tasks AS r
    SET next_due_date = CAST(
            p.anchor + make_interval(months => p.to_come * p.months, days => p.to_come * p.days) AS date
        ),
        anchor_date = p.anchor,
        last_generated_at = clock_timestamp(),
        updated_at = clock_timestamp()
    FROM placed AS p
    WHERE r.id = p.id
    RETURNING r.id
)
SELECT (SELECT count(*) FROM moved) AS definitions, (SELECT count(*) FROM made) AS tasks
