-- a row is a day of a site's history, the latest first
SELECT r.score_date, r.risk_score, r.risk_band::text AS risk_band
FROM risk_scores AS r
WHERE r.site_id = :site_id
  AND r.score_date BETWEEN CAST(:since AS date) AND CAST(:until AS date)
ORDER BY r.score_date DESC
LIMIT :limit
