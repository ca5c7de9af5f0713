-- a row is a renewal that is made for a permit's expiry date, with what its owner is told
WITH due AS (
    SELECT d.id, d.company_id, d.site_id, d.title, d.document_type, d.expiry_date, d.assigned_to
    FROM documents AS d
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.status = 'ACTIVE'
      AND d.deleted_at IS NULL
      AND d.expiry_date BETWEEN CAST(:today AS date) AND CAST(:today AS date) + CAST(:notice_days AS integer)
      AND NOT EXISTS (
          SELECT
          FROM permit_workflows AS w
          WHERE w.document_id = d.id
            AND w.workflow_type = 'RENEWAL'
            AND w.expiry_date IS NULL
            AND w.status NOT IN ('COMPLETED', 'CANCELLED')
      )
    ORDER BY d.id
    FOR SHARE
),
made AS (
    INSERT INTO permit_workflows (
        company_id, document_id, workflow_type, status, expiry_date, regulator_response_deadline, workflow_notes
    )
    SELECT due.company_id, due.id, 'RENEWAL', 'DRAFT', due.expiry_date, due.expiry_date - 30,
           'Auto-created: the permit expires on ' || due.expiry_date
    FROM due
    ORDER BY due.id
    ON CONFLICT DO NOTHING
    RETURNING id, document_id
)
SELECT made.id, due.id AS document_id, due.company_id, due.site_id, due.title, due.document_type, due.expiry_date,
       due.assigned_to
FROM made
JOIN due ON due.id = made.document_id
ORDER BY due.id
