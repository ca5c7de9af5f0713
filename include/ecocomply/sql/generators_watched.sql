-- a row is a generator with its hours, its limits, and the days that its year and month began on
SELECT g.id, g.company_id, g.site_id, g.generator_identifier, g.annual_run_hour_limit, g.monthly_run_hour_limit,
       coalesce(earlier.year_hours, g.current_year_hours) AS current_year_hours,
       coalesce(earlier.month_hours, g.current_month_hours) AS current_month_hours,
       windows.month_start, windows.year_start,
       told.annual AS told_annual, told.monthly AS told_monthly,
       seen.year_hours AS seen_year_hours, seen.month_hours AS seen_month_hours,
       CASE WHEN NOT sane.is_sane THEN 'its anniversary_date is no day between 1900 and 2999' END AS unusable
FROM generators AS g
CROSS JOIN LATERAL (
    SELECT (isfinite(g.anniversary_date) AND g.anniversary_date BETWEEN DATE '1900-01-01' AND DATE '2999-12-31')
        IS NOT FALSE AS is_sane
) AS sane
CROSS JOIN LATERAL (SELECT CASE WHEN sane.is_sane THEN g.anniversary_date END AS day) AS anniversary
CROSS JOIN LATERAL (
    SELECT extract(year FROM CAST(:today AS date)) - extract(year FROM anniversary.day) AS years
) AS age
CROSS JOIN LATERAL (
    SELECT CAST(date_trunc('month', CAST(:today AS timestamp)) AS date) AS month_start,
           CASE
               WHEN anniversary.day IS NULL THEN CAST(date_trunc('year', CAST(:today AS timestamp)) AS date)
               WHEN CAST(anniversary.day + age.years * interval '1 year' AS date) <= CAST(:today AS date)
                   THEN CAST(anniversary.day + age.years * interval '1 year' AS date)
               ELSE CAST(anniversary.day + (age.years - 1) * interval '1 year' AS date)
           END AS year_start
) AS windows
-- up to the adoption: what these had reached is history
CROSS JOIN LATERAL (
    SELECT coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= windows.year_start), 0) AS year_hours,
           coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= windows.month_start), 0) AS month_hours
    FROM generator_hours AS h
    WHERE h.generator_id = g.id
      AND h.hours_date >= least(windows.year_start, windows.month_start)
      AND h.hours_date < (SELECT a.day FROM adoption AS a)
) AS seen
-- the hours of a day that a later run has left behind
LEFT JOIN LATERAL (
    SELECT coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= windows.year_start), 0) AS year_hours,
           coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= windows.month_start), 0) AS month_hours
    FROM generator_hours AS h
    WHERE h.generator_id = g.id
      AND h.hours_date >= least(windows.year_start, windows.month_start)
      AND h.hours_date <= CAST(:today AS date)
) AS earlier ON g.hours_as_of > CAST(:today AS date)
-- the highest threshold that anybody was told of
CROSS JOIN LATERAL (
    SELECT max(reached.threshold) FILTER (
               WHERE starts_with(n.dedupe_key, concat_ws('/', 'run_hours_' || reached.threshold, 'generator', g.id,
                                                         to_char(windows.year_start, 'YYYY-MM-DD'), 'annual', ''))
           ) AS annual,
           max(reached.threshold) FILTER (
               WHERE starts_with(n.dedupe_key, concat_ws('/', 'run_hours_' || reached.threshold, 'generator', g.id,
                                                         to_char(windows.month_start, 'YYYY-MM-DD'), 'monthly', ''))
           ) AS monthly
    FROM notifications AS n
    CROSS JOIN unnest(CAST(:thresholds AS integer[])) AS reached (threshold)
    WHERE n.entity_id = g.id
) AS told
WHERE g.is_active
  AND g.deleted_at IS NULL
  AND (CAST(:ids AS uuid[]) IS NULL OR g.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR g.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR g.id = CAST(:generator_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR g.id > CAST(:after AS uuid))
ORDER BY g.id
LIMIT :limit
