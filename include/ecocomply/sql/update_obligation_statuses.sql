-- a row is how many obligations become overdue, due soon and pending
WITH changing AS MATERIALIZED (
    SELECT o.id, fitting.status
    FROM obligations AS o
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN o.deadline_date < CAST(:today AS date) THEN 'OVERDUE'
            -- work that has begun is only left for being late
            WHEN o.status = 'IN_PROGRESS' THEN 'IN_PROGRESS'
            WHEN o.deadline_date <= CAST(:today AS date) + 7 THEN 'DUE_SOON'
            ELSE 'PENDING'
        END AS status
    ) AS fitting
    WHERE o.status <> 'NOT_APPLICABLE'
      AND o.deleted_at IS NULL
      AND o.deadline_date IS NOT NULL
      AND CAST(o.status AS text) <> fitting.status
      AND (CAST(:ids AS uuid[]) IS NULL OR o.id = ANY (CAST(:ids AS uuid[])))
      AND (CAST(:company_id AS uuid) IS NULL OR o.company_id = CAST(:company_id AS uuid))
      AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
      -- what is done stays done, unless it comes back
      AND (
          o.status <> 'COMPLETED'
          OR (o.frequency IS NOT NULL AND o.frequency <> 'ONE_TIME' AND o.base_date IS NOT NULL)
      )
      -- its date is no longer waited for
      AND NOT EXISTS (
          SELECT FROM deadlines AS d
          WHERE d.obligation_id = o.id AND d.due_date >= o.deadline_date AND d.status = 'COMPLETED'
      )
    ORDER BY o.id
    FOR NO KEY UPDATE OF o
),
-- a word each, and not one that is reckoned: an application may have an enum type of its own
overdue AS (
    UPDATE obligations AS o SET status = 'OVERDUE', updated_at = clock_timestamp()
    FROM changing AS c WHERE o.id = c.id AND c.status = 'OVERDUE'
    RETURNING o.id
),
due_soon AS (
    UPDATE obligations AS o SET status = 'DUE_SOON', updated_at = clock_timestamp()
    FROM changing AS c WHERE o.id = c.id AND c.status = 'DUE_SOON'
    RETURNING o.id
),
pending AS (
    UPDATE obligations AS o SET status = 'PENDING', updated_at = clock_timestamp()
    FROM changing AS c WHERE o.id = c.id AND c.status = 'PENDING'
    RETURNING o.id
)
SELECT (SELECT count(*) FROM overdue) AS obligations_overdue,
       (SELECT count(*) FROM due_soon) AS obligations_due_soon,
       (SELECT count(*) FROM pending) AS obligations_pending
