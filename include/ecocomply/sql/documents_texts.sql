-- a row is one of these documents with its text, if it is still to be looked through; nobody changes it meanwhile
SELECT d.id, d.extracted_text
FROM documents AS d
JOIN modules AS m ON m.id = d.module_id
WHERE d.id = ANY (CAST(:ids AS uuid[]))
  AND m.module_code = 'MODULE_1'
  AND d.status = 'ACTIVE'
  AND d.extraction_status = 'COMPLETED'
  AND d.extracted_text IS NOT NULL
  AND d.deleted_at IS NULL
  AND d.updated_at <= :as_of
  AND (NOT CAST(:changed_only AS boolean) OR d.scanned_at IS NULL OR d.scanned_at < d.updated_at)
ORDER BY d.id
FOR NO KEY UPDATE OF d
