-- a row is a generator whose hours of the year or the month are others than before
WITH windows AS (
    SELECT d.id, d.year_start, d.month_start
    FROM unnest(CAST(:ids AS uuid[]), CAST(:year_starts AS date[]), CAST(:month_starts AS date[]))
        AS d (id, year_start, month_start)
),
due AS (
    SELECT g.id, summed.year_hours, summed.month_hours
    FROM windows AS w
    JOIN generators AS g ON g.id = w.id
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= w.year_start), 0) AS year_hours,
               coalesce(sum(h.hours) FILTER (WHERE h.hours_date >= w.month_start), 0) AS month_hours
        FROM generator_hours AS h
        WHERE h.generator_id = w.id
          AND h.hours_date >= least(w.year_start, w.month_start)
          AND h.hours_date <= CAST(:today AS date)
    ) AS summed
    WHERE g.is_active
      AND g.deleted_at IS NULL
      -- a run of an earlier day sets back nothing
      AND (g.hours_as_of IS NULL OR g.hours_as_of <= CAST(:today AS date))
      AND (g.current_year_hours, g.current_month_hours) IS DISTINCT FROM (summed.year_hours, summed.month_hours)
    ORDER BY g.id
    FOR NO KEY UPDATE OF g
)
UPDATE generators AS g
SET current_year_hours = due.year_hours,
    current_month_hours = due.month_hours,
    hours_as_of = CAST(:today AS date),
    updated_at = clock_timestamp()
FROM due
WHERE g.id = due.id
