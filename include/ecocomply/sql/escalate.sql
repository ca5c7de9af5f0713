-- a row is an overdue deadline or obligation that is escalated by one level, and whom its workflow names for that
WITH deadlines_due AS (
    SELECT d.id, d.obligation_id, d.due_date
    FROM deadlines AS d
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.status = 'OVERDUE'
      AND d.due_date < CAST(:today AS date)
      AND d.due_date >= (SELECT a.day FROM adoption AS a)
    ORDER BY d.id
    FOR SHARE
),
obligations_due AS (
    SELECT o.id, o.deadline_date
    FROM obligations AS o
    WHERE o.id = ANY (CAST(:ids AS uuid[]))
      AND o.status = 'OVERDUE'
      AND o.deadline_date < CAST(:today AS date)
      AND o.deadline_date >= (SELECT a.day FROM adoption AS a)
      AND NOT EXISTS (SELECT FROM deadlines AS d WHERE d.obligation_id = o.id)
    ORDER BY o.id
    FOR SHARE
),
overdue AS (
    SELECT due.entity_type, due.id, due.due_date, CAST(:today AS date) - due.due_date AS days, o.id AS obligation_id,
           o.company_id, o.site_id, o.summary, o.category
    FROM (
        SELECT 'DEADLINE' AS entity_type, d.id, d.due_date, d.obligation_id FROM deadlines_due AS d
        UNION ALL
        SELECT 'OBLIGATION', o.id, o.deadline_date, o.id FROM obligations_due AS o
    ) AS due
    JOIN obligations AS o ON o.id = due.obligation_id
    JOIN sites AS s ON s.id = o.site_id
    JOIN companies AS c ON c.id = o.company_id
    WHERE o.deleted_at IS NULL
      AND s.deleted_at IS NULL
      AND c.deleted_at IS NULL
      AND o.status <> 'NOT_APPLICABLE'
),
levels AS (
    SELECT x.id, w.id AS workflow_id, l.level, l.named, l.days <= x.days AS reached, l.level > present.level AS higher
    FROM overdue AS x
    -- the category's workflow before the company's
    LEFT JOIN LATERAL (
        SELECT w.*
        FROM escalation_workflows AS w
        WHERE w.company_id = x.company_id
          AND w.is_active
          AND (w.obligation_category = x.category OR w.obligation_category IS NULL)
        ORDER BY w.obligation_category IS NULL, w.created_at DESC, w.id
        LIMIT 1
    ) AS w ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(max(e.escalation_level), 0) AS level, max(e.escalated_at) AS escalated_at
        FROM escalations AS e
        WHERE e.entity_id = x.id
          AND e.entity_type::text = x.entity_type
          AND e.resolved_at IS NULL
    ) AS present
    CROSS JOIN LATERAL (
        VALUES (1, CASE WHEN w.id IS NULL THEN 7 ELSE w.level_1_days END, w.level_1_recipients),
               (2, CASE WHEN w.id IS NULL THEN 14 ELSE w.level_2_days END, w.level_2_recipients),
               (3, CASE WHEN w.id IS NULL THEN 21 ELSE w.level_3_days END, w.level_3_recipients),
               (4, CASE WHEN w.id IS NULL THEN 30 ELSE w.level_4_days END, w.level_4_recipients)
    ) AS l (level, days, named)
    WHERE l.days IS NOT NULL
      -- one level a day, however many runs it has, and none by a day that is made up for
      AND (
          present.escalated_at IS NULL
          OR CAST(present.escalated_at AT TIME ZONE 'UTC' AS date) < CAST(:today AS date)
      )
),
-- the next level, if it or a higher one is reached
due AS (
    SELECT DISTINCT ON (id) id, workflow_id, level, named
    FROM (
        SELECT v.*, max(v.level) FILTER (WHERE v.reached) OVER (PARTITION BY v.id) AS highest FROM levels AS v
    ) AS v
    WHERE higher
      AND level <= highest
    ORDER BY id, level
),
made AS (
    INSERT INTO escalations (
        company_id, site_id, obligation_id, workflow_id, entity_type, entity_id, escalation_level, escalated_at,
        escalation_reason
    )
    SELECT x.company_id, x.site_id, x.obligation_id, due.workflow_id, typed.entity_type, x.id, due.level, :as_of,
           x.days || CASE WHEN x.days = 1 THEN ' day' ELSE ' days' END || ' overdue'
    FROM due
    JOIN overdue AS x ON x.id = due.id
    -- an application may have an enum of its own for these words
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::escalations, jsonb_build_object('entity_type', x.entity_type)
    ) AS typed
    ORDER BY x.id
    ON CONFLICT DO NOTHING
    RETURNING id, entity_id
)
SELECT made.id, x.entity_type, x.id AS entity_id, x.due_date, x.days, x.obligation_id, x.company_id, x.site_id,
       x.summary, s.name AS site_name, due.workflow_id, due.level, coalesce(due.named, '{}') AS named
FROM made
JOIN overdue AS x ON x.id = made.entity_id
JOIN due ON due.id = x.id
JOIN sites AS s ON s.id = x.site_id
ORDER BY x.id
