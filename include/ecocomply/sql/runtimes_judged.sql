-- a row is a run, locked, with its generator's limits and hours of the year and the month that the run is in
WITH entries AS MATERIALIZED (
    SELECT m.id, m.generator_id, m.company_id, m.run_date, m.runtime_hours
    FROM runtime_monitoring AS m
    WHERE m.id = ANY (CAST(:ids AS uuid[]))
      AND m.validation_status = 'APPROVED'
      AND m.exceedance_checked_at IS NULL
      AND m.run_date <= CAST(:today AS date)
    ORDER BY m.id
    FOR NO KEY UPDATE
),
windows AS MATERIALIZED (
    SELECT e.id, e.generator_id, e.company_id, e.run_date, e.runtime_hours, g.site_id, g.generator_identifier,
           g.annual_run_hour_limit, g.monthly_run_hour_limit, month.first AS month_start,
           CAST(month.first + interval '1 month' AS date) AS month_after, years.year_start, years.year_after
    FROM entries AS e
    JOIN generators AS g ON g.id = e.generator_id
    CROSS JOIN LATERAL (
        SELECT CAST(date_trunc('month', CAST(e.run_date AS timestamp)) AS date) AS first
    ) AS month
    -- the year from the last anniversary on or before the run to the next one; the calendar year without any
    CROSS JOIN LATERAL (
        SELECT coalesce(
                   g.anniversary_date, CAST(date_trunc('year', CAST(e.run_date AS timestamp)) AS date)
               ) AS base
    ) AS anniversary
    CROSS JOIN LATERAL (
        SELECT max(one.day) FILTER (WHERE one.day <= e.run_date) AS year_start,
               min(one.day) FILTER (WHERE one.day > e.run_date) AS year_after
        FROM generate_series(-1, 1) AS k
        CROSS JOIN LATERAL (
            SELECT CAST(
                       anniversary.base
                       + (extract(year FROM e.run_date) - extract(year FROM anniversary.base) + k) * interval '1 year'
                       AS date
                   ) AS day
        ) AS one
    ) AS years
),
years AS MATERIALIZED (
    SELECT w.generator_id, w.year_start, summed.hours
    FROM (SELECT DISTINCT generator_id, year_start, year_after FROM windows) AS w
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.hours), 0) AS hours
        FROM generator_hours AS h
        WHERE h.generator_id = w.generator_id
          AND h.hours_date >= w.year_start
          AND h.hours_date < w.year_after
          AND h.hours_date <= CAST(:today AS date)
    ) AS summed
),
months AS MATERIALIZED (
    SELECT w.generator_id, w.month_start, summed.hours
    FROM (SELECT DISTINCT generator_id, month_start, month_after FROM windows) AS w
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.hours), 0) AS hours
        FROM generator_hours AS h
        WHERE h.generator_id = w.generator_id
          AND h.hours_date >= w.month_start
          AND h.hours_date < w.month_after
          AND h.hours_date <= CAST(:today AS date)
    ) AS summed
)
SELECT w.id, w.generator_id, w.company_id, w.site_id, w.generator_identifier, w.run_date, w.runtime_hours,
       w.annual_run_hour_limit, w.monthly_run_hour_limit, w.year_start, w.year_after - 1 AS year_end, w.month_start,
       w.month_after - 1 AS month_end, y.hours AS year_hours, m.hours AS month_hours
FROM windows AS w
JOIN years AS y ON y.generator_id = w.generator_id AND y.year_start = w.year_start
JOIN months AS m ON m.generator_id = w.generator_id AND m.month_start = w.month_start
ORDER BY w.run_date, w.id
