-- a row is a permit that expires within the notice, and whether a renewal is there for that date
SELECT d.id,
       EXISTS (
           SELECT
           FROM permit_workflows AS w
           WHERE w.document_id = d.id
             AND w.workflow_type = 'RENEWAL'
             -- an application's own may not say which expiry it is for
             AND (
                 w.expiry_date = d.expiry_date
                 OR (w.expiry_date IS NULL AND w.status NOT IN ('COMPLETED', 'CANCELLED'))
             )
       ) AS renewed
FROM documents AS d
WHERE d.document_type IN ('PERMIT', 'CONSENT', 'REGISTRATION', 'LICENCE')
  AND d.status = 'ACTIVE'
  AND d.deleted_at IS NULL
  AND d.expiry_date BETWEEN CAST(:today AS date) AND CAST(:today AS date) + CAST(:notice_days AS integer)
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
