-- one row: a site with its latest score and what it is made of
SELECT s.id, s.name AS site_name, s.company_id, c.name AS company_name, r.score_date, r.risk_score,
       r.risk_band::text AS risk_band, r.overdue_score, r.evidence_gap_score, r.escalation_score,
       r.historical_score, r.consecutive_high_days, r.factors, r.calculated_at
FROM sites AS s
JOIN companies AS c ON c.id = s.company_id
JOIN risk_scores AS r ON r.site_id = s.id
WHERE s.id = :site_id
ORDER BY r.score_date DESC
LIMIT 1
