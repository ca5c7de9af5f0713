-- a row is an active schedule whose next date is no longer that of its first open deadline to come
WITH changing AS MATERIALIZED (
    SELECT s.id, fitting.day
    FROM schedules AS s
    JOIN obligations AS o ON o.id = s.obligation_id
    CROSS JOIN LATERAL (
        SELECT coalesce(
            (
                SELECT min(d.due_date)
                FROM deadlines AS d
                WHERE d.obligation_id = s.obligation_id
                  AND d.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
                  AND d.due_date >= CAST(:today AS date)
            ),
            -- none that near: the obligation's next date, while it has one
            CASE
                WHEN o.status <> 'NOT_APPLICABLE'
                     AND o.deleted_at IS NULL
                     AND NOT (o.status = 'COMPLETED' AND s.frequency = 'ONE_TIME')
                     AND NOT EXISTS (
                         SELECT FROM deadlines AS d
                         WHERE d.obligation_id = o.id AND d.due_date >= o.deadline_date AND d.status = 'COMPLETED'
                     )
                THEN o.deadline_date
            END
        ) AS day
    ) AS fitting
    WHERE s.status = 'ACTIVE'
      AND s.next_due_date IS DISTINCT FROM fitting.day
      AND (CAST(:ids AS uuid[]) IS NULL OR s.id = ANY (CAST(:ids AS uuid[])))
      AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
      AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
    ORDER BY s.id
    FOR NO KEY UPDATE OF s
)
UPDATE schedules AS s
SET next_due_date = c.day,
    updated_at = clock_timestamp()
FROM changing AS c
WHERE s.id = c.id
