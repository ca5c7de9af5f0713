-- the oldest open renewal of each document is the one for its present expiry
UPDATE permit_workflows AS w SET expiry_date = d.expiry_date
FROM documents AS d
WHERE d.id = w.document_id AND w.workflow_type::text = 'RENEWAL' AND w.expiry_date IS NULL
  AND w.id = (
      SELECT o.id FROM permit_workflows AS o
      WHERE o.document_id = d.id AND o.workflow_type::text = 'RENEWAL'
        AND o.status::text NOT IN ('COMPLETED', 'CANCELLED')
      ORDER BY o.created_at, o.id LIMIT 1
  )
