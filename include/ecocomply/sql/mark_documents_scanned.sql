-- a row is a document that has been looked through as of then; an older run does not set it back
UPDATE documents AS d
SET scanned_at = :as_of
WHERE d.id = ANY (CAST(:ids AS uuid[]))
  AND (d.scanned_at IS NULL OR d.scanned_at < :as_of)
