-- a row is how many sites have a score of the day, and how many of them are in each band
SELECT
    count(*) AS sites,
    count(*) FILTER (WHERE r.risk_band = 'LOW') AS low,
    count(*) FILTER (WHERE r.risk_band = 'MEDIUM') AS medium,
    count(*) FILTER (WHERE r.risk_band = 'HIGH') AS high,
    count(*) FILTER (WHERE r.risk_band = 'CRITICAL') AS critical
FROM sites AS s
JOIN risk_scores AS r ON r.site_id = s.id AND r.score_date = CAST(:today AS date)
WHERE s.is_active
  AND s.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR s.id = CAST(:site_id AS uuid))
