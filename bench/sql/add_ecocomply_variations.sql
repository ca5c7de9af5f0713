-- a row is a variation of a permit that the regulator looks at, and has had to answer for up to two weeks
INSERT INTO permit_workflows (document_id, workflow_type, status, submitted_date, regulator_response_deadline)
SELECT d.id, 'VARIATION', 'UNDER_REVIEW', CAST(:today AS date) - 80,
       CAST(:today AS date) - 1 - CAST(row_number() OVER (ORDER BY d.id) % 14 AS integer)
FROM documents AS d
WHERE NOT EXISTS (SELECT FROM permit_workflows AS w WHERE w.document_id = d.id AND w.workflow_type = 'VARIATION')
