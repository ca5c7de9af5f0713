-- a row is a site's score of one of the last seven days
INSERT INTO risk_scores (
    id, site_id, score_date, risk_score, risk_band, overdue_score, evidence_gap_score, escalation_score,
    historical_score, calculated_at
)
SELECT pg_temp.make_id('score', 10 * s + k), pg_temp.make_id('site', s), pg_temp.today() - k, part.score,
       CASE WHEN part.score <= 25 THEN 'LOW' WHEN part.score <= 50 THEN 'MEDIUM' ELSE 'HIGH' END,
       part.score, part.score, part.score, part.score, pg_temp.at(pg_temp.today() - k, 4)
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN generate_series(1, 7) AS k
CROSS JOIN LATERAL (SELECT pg_temp.roll('score', s, 60) + (k % 3) AS score) AS part
