-- a row is how many deadlines were completed after people were told that they had passed
SELECT count(*)
FROM deadlines AS d
WHERE d.status = 'COMPLETED'
  AND d.completed_at > d.breach_detected_at
  AND d.completed_at <= :as_of
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
