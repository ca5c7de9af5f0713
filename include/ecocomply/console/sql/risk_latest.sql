-- a row is a site with its latest score, the highest first
SELECT s.id, s.name AS site_name, s.company_id, c.name AS company_name, r.score_date, r.risk_score,
       r.risk_band::text AS risk_band, r.overdue_score, r.evidence_gap_score, r.escalation_score,
       r.historical_score, r.consecutive_high_days, before.risk_score AS score_before
FROM sites AS s
JOIN companies AS c ON c.id = s.company_id
CROSS JOIN LATERAL (
    SELECT * FROM risk_scores AS r WHERE r.site_id = s.id ORDER BY r.score_date DESC LIMIT 1
) AS r
LEFT JOIN LATERAL (
    SELECT b.risk_score
    FROM risk_scores AS b
    WHERE b.site_id = s.id
      AND b.score_date < r.score_date
    ORDER BY b.score_date DESC
    LIMIT 1
) AS before ON TRUE
WHERE s.deleted_at IS NULL
  AND (CAST(:company_ids AS uuid[]) IS NULL OR s.company_id = ANY (CAST(:company_ids AS uuid[])))
  AND (CAST(:band AS text) IS NULL OR r.risk_band::text = CAST(:band AS text))
  AND (
      CAST(:after_score AS numeric) IS NULL
      OR (-r.risk_score, s.id) > (-CAST(:after_score AS numeric), CAST(:after_id AS uuid))
  )
ORDER BY r.risk_score DESC, s.id
LIMIT :limit
