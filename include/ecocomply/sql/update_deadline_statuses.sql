-- a row is how many open deadlines become due soon, overdue, and neither of both
WITH changing AS MATERIALIZED (
    SELECT d.id,
           d.due_date < CAST(:today AS date) AS passed,
           d.due_date <= CAST(:today AS date) + 3 AS is_near
    FROM deadlines AS d
    WHERE (
          (d.status IN ('PENDING', 'DUE_SOON') AND d.due_date < CAST(:today AS date))
          OR (
              d.status IN ('PENDING', 'DUE_SOON')
              AND d.due_date >= CAST(:today AS date)
              AND (d.status = 'DUE_SOON') <> (d.due_date <= CAST(:today AS date) + 3)
          )
          -- moved; what was found to have passed, a run of an earlier day leaves
          OR (
              d.status = 'OVERDUE'
              AND d.due_date >= CAST(:today AS date)
              AND (
                  d.breach_detected_at IS NULL
                  OR CAST(d.breach_detected_at AT TIME ZONE 'UTC' AS date) <= d.due_date
              )
          )
      )
      AND (CAST(:ids AS uuid[]) IS NULL OR d.id = ANY (CAST(:ids AS uuid[])))
      AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
      AND (CAST(:site_id AS uuid) IS NULL OR d.site_id = CAST(:site_id AS uuid))
    ORDER BY d.id
    FOR NO KEY UPDATE OF d
),
-- a word each, and not one that is reckoned: an application may have an enum type of its own
overdue AS (
    UPDATE deadlines AS d SET status = 'OVERDUE', updated_at = clock_timestamp()
    FROM changing AS c WHERE d.id = c.id AND c.passed
    RETURNING d.id
),
due_soon AS (
    UPDATE deadlines AS d SET status = 'DUE_SOON', updated_at = clock_timestamp()
    FROM changing AS c WHERE d.id = c.id AND NOT c.passed AND c.is_near
    RETURNING d.id
),
pending AS (
    UPDATE deadlines AS d SET status = 'PENDING', updated_at = clock_timestamp()
    FROM changing AS c WHERE d.id = c.id AND NOT c.is_near
    RETURNING d.id
)
SELECT (SELECT count(*) FROM overdue) AS overdue,
       (SELECT count(*) FROM due_soon) AS due_soon,
       (SELECT count(*) FROM pending) AS pending
