-- a row is a running clock and the most urgent mark that it has crossed, if nobody was reminded of that yet
SELECT c.id, c.company_id, c.site_id, s.name AS site_name, c.clock_type, c.target_date, c.assigned_to, crossed.mark
FROM compliance_clocks_universal AS c
CROSS JOIN LATERAL (
    SELECT min(day) AS mark
    FROM unnest(c.reminder_days) AS day
    -- no days are left to or since an infinite date: the clock's recalculation has refused it
    WHERE CASE WHEN isfinite(c.target_date) THEN c.target_date - CAST(:today AS date) <= day END
) AS crossed
LEFT JOIN sites AS s ON s.id = c.site_id
WHERE c.status IN ('ACTIVE', 'OVERDUE')
  AND crossed.mark IS NOT NULL
  -- after a more urgent mark of the same date a milder one is no news; an empty place in the list is none
  AND NOT coalesce(crossed.mark >= ANY (c.reminders_sent), false)
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR c.id > CAST(:after AS uuid))
ORDER BY c.id
LIMIT :limit
