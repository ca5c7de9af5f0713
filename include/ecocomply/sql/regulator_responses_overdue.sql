-- a row is a workflow that the regulator has not answered in time, and of which nobody was told on this day
SELECT w.id, position(CAST(:note AS text) IN coalesce(w.workflow_notes, '')) > 0 AS noted
FROM permit_workflows AS w
JOIN documents AS d ON d.id = w.document_id
WHERE w.status = 'UNDER_REVIEW'
  AND w.regulator_response_date IS NULL
  AND w.regulator_response_deadline < CAST(:today AS date)
  AND w.regulator_response_deadline >= (SELECT a.day FROM adoption AS a)
  AND d.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR w.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR w.id > CAST(:after AS uuid))
ORDER BY w.id
LIMIT :limit
