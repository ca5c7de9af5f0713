-- a row is a site that is in a worse band than by its score before this day's, whenever that was
SELECT s.id, s.company_id, s.name AS site_name, r.risk_score, r.risk_band, r.consecutive_high_days,
       before.risk_score AS previous_score, before.risk_band AS previous_band
FROM sites AS s
JOIN risk_scores AS r ON r.site_id = s.id AND r.score_date = CAST(:today AS date)
CROSS JOIN LATERAL (
    SELECT p.risk_score, p.risk_band
    FROM risk_scores AS p
    WHERE p.site_id = s.id
      AND p.score_date < CAST(:today AS date)
    ORDER BY p.score_date DESC
    LIMIT 1
) AS before
WHERE s.is_active
  AND s.deleted_at IS NULL
  AND array_position(ARRAY['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], CAST(r.risk_band AS text))
      > array_position(ARRAY['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], CAST(before.risk_band AS text))
  AND (CAST(:ids AS uuid[]) IS NULL OR s.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR s.id = CAST(:site_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR s.id > CAST(:after AS uuid))
ORDER BY s.id
LIMIT :limit
