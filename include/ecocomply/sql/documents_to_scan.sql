-- a row is a document of module 1 whose text has changed since it was last looked through, or any if all are wanted
SELECT d.id
FROM documents AS d
JOIN modules AS m ON m.id = d.module_id
WHERE m.module_code = 'MODULE_1'
  AND d.status = 'ACTIVE'
  AND d.extraction_status = 'COMPLETED'
  AND d.extracted_text IS NOT NULL
  AND d.deleted_at IS NULL
  AND d.updated_at <= :as_of
  AND (NOT CAST(:changed_only AS boolean) OR d.scanned_at IS NULL OR d.scanned_at < d.updated_at)
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:document_id AS uuid) IS NULL OR d.id = CAST(:document_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.id > CAST(:after AS uuid))
ORDER BY d.id
LIMIT :limit
