-- a row is a clock of which people are reminded now; one that has another date or was reminded of stays out
WITH due AS (
    SELECT c.id, d.mark
    FROM unnest(CAST(:ids AS uuid[]), CAST(:marks AS int[])) AS d (id, mark)
    JOIN compliance_clocks_universal AS c ON c.id = d.id
    WHERE c.status IN ('ACTIVE', 'OVERDUE')
      AND d.mark = ANY (c.reminder_days)
      AND c.target_date - CAST(:today AS date) <= d.mark
      AND NOT coalesce(d.mark >= ANY (c.reminders_sent), false)
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
    ORDER BY c.id
    FOR NO KEY UPDATE OF c
)
UPDATE compliance_clocks_universal AS c
SET reminders_sent = c.reminders_sent || due.mark,
    updated_at = clock_timestamp()
FROM due
WHERE c.id = due.id
RETURNING c.id
