-- a row is an open deadline of a day, of an obligation that needs evidence, without an open gap
SELECT d.id
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
WHERE d.due_date = CAST(:day AS date)
  AND o.evidence_required
  AND o.deleted_at IS NULL
  AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
  AND NOT EXISTS (SELECT FROM evidence_gaps AS g WHERE g.deadline_id = d.id AND g.resolved_at IS NULL)
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
