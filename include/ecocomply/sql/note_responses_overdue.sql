-- a row is a workflow in which it is noted that people are told today, with what they are told
WITH due AS (
    SELECT w.id
    FROM permit_workflows AS w
    WHERE w.id = ANY (CAST(:ids AS uuid[]))
      AND w.status = 'UNDER_REVIEW'
      AND w.regulator_response_date IS NULL
      AND w.regulator_response_deadline < CAST(:today AS date)
      AND w.regulator_response_deadline >= (SELECT a.day FROM adoption AS a)
      AND position(CAST(:note AS text) IN coalesce(w.workflow_notes, '')) = 0
    ORDER BY w.id
    FOR NO KEY UPDATE
),
noted AS (
    UPDATE permit_workflows AS w
    SET workflow_notes = concat_ws(E'\n', nullif(w.workflow_notes, ''), CAST(:note AS text)),
        updated_at = clock_timestamp()
    FROM due
    WHERE w.id = due.id
    RETURNING w.id, w.company_id, w.document_id, w.workflow_type, w.submitted_date, w.regulator_response_deadline
)
SELECT n.id, n.company_id, n.document_id, n.workflow_type::text AS workflow_type, n.submitted_date,
       n.regulator_response_deadline AS deadline, CAST(:today AS date) - n.regulator_response_deadline AS days_overdue,
       d.site_id, d.title, d.assigned_to
FROM noted AS n
JOIN documents AS d ON d.id = n.document_id
ORDER BY n.id
