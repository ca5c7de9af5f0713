-- a row is a parameter whose sample is due or late, and not there
SELECT p.id, p.company_id, p.site_id, s.name AS site_name, p.parameter_type, p.next_sample_date
FROM parameters AS p
JOIN documents AS d ON d.id = p.document_id
JOIN sites AS s ON s.id = p.site_id
WHERE p.is_active
  AND d.status = 'ACTIVE'
  AND d.deleted_at IS NULL
  AND p.next_sample_date <= CAST(:today AS date)
  AND p.next_sample_date >= (SELECT a.day FROM adoption AS a)
  AND NOT EXISTS (
      SELECT FROM lab_results AS l
      WHERE l.parameter_id = p.id
        AND l.sample_date BETWEEN p.next_sample_date AND CAST(:today AS date)
  )
  AND (CAST(:ids AS uuid[]) IS NULL OR p.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR p.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR p.site_id = CAST(:site_id AS uuid))
  AND (CAST(:parameter_id AS uuid) IS NULL OR p.id = CAST(:parameter_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR p.id > CAST(:after AS uuid))
ORDER BY p.id
LIMIT :limit
