-- a row is a site of a company with its latest score, by name
SELECT s.id, s.name, s.is_active, r.risk_score, r.risk_band::text AS risk_band, r.score_date
FROM sites AS s
LEFT JOIN LATERAL (
    SELECT * FROM risk_scores AS r WHERE r.site_id = s.id ORDER BY r.score_date DESC LIMIT 1
) AS r ON TRUE
WHERE s.company_id = :company_id
  AND s.deleted_at IS NULL
ORDER BY s.name, s.id
LIMIT :limit
