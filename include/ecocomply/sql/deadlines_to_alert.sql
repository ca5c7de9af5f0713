-- a row is an open deadline of a day, if nobody who looks after it was told of that mark yet, nor of a nearer one
SELECT d.id, d.company_id, o.site_id, d.obligation_id, d.due_date, o.summary, o.assigned_to, s.name AS site_name
FROM (
    SELECT * FROM deadlines WHERE status IN ('PENDING', 'DUE_SOON')
    UNION ALL
    -- moved, and still of its former status; what was found to have passed is no news to a run of an earlier day
    SELECT *
    FROM deadlines
    WHERE status = 'OVERDUE'
      AND (
          breach_detected_at IS NULL
          OR CAST(breach_detected_at AT TIME ZONE 'UTC' AS date) <= due_date
      )
) AS d
JOIN obligations AS o ON o.id = d.obligation_id
JOIN sites AS s ON s.id = o.site_id
WHERE d.due_date = CAST(:day AS date)
  AND o.deleted_at IS NULL
  AND o.status <> 'NOT_APPLICABLE'
  AND NOT (o.status = 'COMPLETED' AND coalesce(CAST(o.frequency AS text), 'ONE_TIME') = 'ONE_TIME')
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR o.site_id = CAST(:site_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
  -- of this mark the key decides, and this spares the words of what the assignee was told hours ago; after a more
  -- urgent one, whoever was told, it is no news
  AND NOT EXISTS (
      SELECT
      FROM notifications AS n
      CROSS JOIN unnest(CAST(:marks AS integer[])) AS told (mark)
      WHERE n.entity_id = d.id
        AND starts_with(
            n.dedupe_key,
            concat_ws('/', 'deadline_' || told.mark, 'deadline', d.id, to_char(d.due_date, 'YYYY-MM-DD'), '')
        )
        AND (
            told.mark < CAST(:mark AS integer)
            OR (told.mark = CAST(:mark AS integer) AND (o.assigned_to IS NULL OR n.user_id = o.assigned_to))
        )
  )
ORDER BY d.id
LIMIT :limit
