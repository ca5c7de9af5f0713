-- a row is a parameter that is sampled, with the day that its next sample counts from: the last sample, else its own
SELECT p.id, p.company_id, p.sampling_frequency, p.sampling_weekday, p.next_sample_date, s.country_code, s.region,
       coalesce(last.sample_date, CAST(p.created_at AT TIME ZONE 'UTC' AS date)) AS base_date,
       CASE WHEN last.sample_date IS NULL THEN 'created_at' ELSE 'lab_results.sample_date' END AS base_column
FROM parameters AS p
JOIN documents AS d ON d.id = p.document_id
JOIN sites AS s ON s.id = p.site_id
LEFT JOIN LATERAL (
    SELECT l.sample_date
    FROM lab_results AS l
    WHERE l.parameter_id = p.id
      AND l.sample_date <= CAST(:today AS date)
    ORDER BY l.sample_date DESC
    LIMIT 1
) AS last ON true
WHERE p.is_active
  AND d.status = 'ACTIVE'
  AND d.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR p.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR p.site_id = CAST(:site_id AS uuid))
  AND (CAST(:parameter_id AS uuid) IS NULL OR p.id = CAST(:parameter_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR p.id > CAST(:after AS uuid))
ORDER BY p.id
LIMIT :limit
