-- a row is a generator with its hours, its limits, and the days that its year and month began on
SELECT g.id, g.company_id, g.site_id, g.generator_identifier, g.annual_run_hour_limit, g.monthly_run_hour_limit,
       g.current_year_hours, g.current_month_hours,
       CAST(date_trunc('month', CAST(:today AS timestamp)) AS date) AS month_start,
       CASE
           WHEN g.anniversary_date IS NULL THEN CAST(date_trunc('year', CAST(:today AS timestamp)) AS date)
           WHEN CAST(g.anniversary_date + age.years * interval '1 year' AS date) <= CAST(:today AS date)
               THEN CAST(g.anniversary_date + age.years * interval '1 year' AS date)
           ELSE CAST(g.anniversary_date + (age.years - 1) * interval '1 year' AS date)
       END AS year_start
FROM generators AS g
CROSS JOIN LATERAL (
    SELECT extract(year FROM CAST(:today AS date)) - extract(year FROM g.anniversary_date) AS years
) AS age
WHERE g.is_active
  AND g.deleted_at IS NULL
  AND (CAST(:ids AS uuid[]) IS NULL OR g.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR g.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR g.id = CAST(:generator_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR g.id > CAST(:after AS uuid))
ORDER BY g.id
LIMIT :limit
