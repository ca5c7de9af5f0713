-- a row is a site's score of the day, where it is new or another one
WITH scored AS MATERIALIZED (
    SELECT s.id, s.company_id
    FROM sites AS s
    WHERE s.is_active
      AND s.deleted_at IS NULL
      AND (CAST(:ids AS uuid[]) IS NULL OR s.id = ANY (CAST(:ids AS uuid[])))
      AND (CAST(:company_id AS uuid) IS NULL OR s.company_id = CAST(:company_id AS uuid))
      AND (CAST(:site_id AS uuid) IS NULL OR s.id = CAST(:site_id AS uuid))
),
-- by deadline where the obligation has one, else by the obligation's own date
late AS (
    SELECT o.site_id, CAST(:today AS date) - d.due_date AS days
    FROM scored AS s
    JOIN obligations AS o ON o.site_id = s.id
    JOIN deadlines AS d ON d.obligation_id = o.id
    WHERE d.due_date < CAST(:today AS date)
      AND d.status <> 'NOT_APPLICABLE'
      AND (d.status <> 'COMPLETED' OR d.completed_at > CAST(:as_of AS timestamptz))
      AND o.status <> 'NOT_APPLICABLE'
      AND o.deleted_at IS NULL
    UNION ALL
    SELECT o.site_id, CAST(:today AS date) - o.deadline_date AS days
    FROM scored AS s
    JOIN obligations AS o ON o.site_id = s.id
    WHERE o.deadline_date < CAST(:today AS date)
      AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')
      AND o.deleted_at IS NULL
      AND NOT EXISTS (SELECT FROM deadlines AS d WHERE d.obligation_id = o.id)
),
overdue AS (
    SELECT l.site_id, count(*) AS items,
           count(*) FILTER (WHERE l.days <= 7) AS to_7_days,
           count(*) FILTER (WHERE l.days > 7 AND l.days <= 30) AS to_30_days,
           count(*) FILTER (WHERE l.days > 30) AS beyond,
           sum(CASE WHEN l.days <= 7 THEN 10 WHEN l.days <= 30 THEN 20 ELSE 40 END) AS points
    FROM late AS l
    GROUP BY l.site_id
),
gaps AS (
    SELECT g.site_id,
           count(*) FILTER (WHERE g.severity = 'CRITICAL') AS critical,
           count(*) FILTER (WHERE g.severity = 'HIGH') AS high,
           count(*) FILTER (WHERE g.severity = 'MEDIUM') AS medium,
           count(*) FILTER (WHERE g.severity = 'LOW') AS low,
           sum(
               CASE
                   WHEN g.severity = 'CRITICAL' THEN 40
                   WHEN g.severity = 'HIGH' THEN 20
                   WHEN g.severity = 'MEDIUM' THEN 10
                   ELSE 5
               END
           ) AS points
    FROM scored AS s
    JOIN evidence_gaps AS g ON g.site_id = s.id
    WHERE g.detected_at <= CAST(:as_of AS timestamptz)
      AND (g.resolved_at IS NULL OR g.resolved_at > CAST(:as_of AS timestamptz))
    GROUP BY g.site_id
),
-- of an entity that was escalated to several levels, the highest
escalated AS (
    SELECT h.site_id, count(*) AS entities, max(h.level) AS highest, sum(15 * h.level) AS points
    FROM (
        SELECT e.site_id, max(e.escalation_level) AS level
        FROM scored AS s
        JOIN escalations AS e ON e.site_id = s.id
        WHERE e.escalated_at <= CAST(:as_of AS timestamptz)
          AND (e.resolved_at IS NULL OR e.resolved_at > CAST(:as_of AS timestamptz))
        GROUP BY e.site_id, e.entity_type, e.entity_id
    ) AS h
    GROUP BY h.site_id
),
history AS (
    SELECT o.site_id, count(*) AS due,
           count(*) FILTER (
               WHERE d.status <> 'COMPLETED'
                  OR CAST(d.completed_at AT TIME ZONE 'UTC' AS date) > d.due_date
           ) AS missed
    FROM scored AS s
    JOIN obligations AS o ON o.site_id = s.id
    JOIN deadlines AS d ON d.obligation_id = o.id
    WHERE d.due_date >= CAST(:today AS date) - 90
      AND d.due_date < CAST(:today AS date)
      AND d.status <> 'NOT_APPLICABLE'
      AND o.status <> 'NOT_APPLICABLE'
      AND o.deleted_at IS NULL
    GROUP BY o.site_id
),
clocks AS (
    SELECT c.site_id,
           count(*) FILTER (WHERE c.criticality = 'RED') AS red,
           count(*) FILTER (WHERE c.criticality = 'AMBER') AS amber,
           count(*) FILTER (WHERE c.criticality = 'GREEN') AS green
    FROM scored AS s
    JOIN compliance_clocks_universal AS c ON c.site_id = s.id
    WHERE c.status IN ('ACTIVE', 'OVERDUE')
    GROUP BY c.site_id
),
parts AS (
    SELECT s.id, s.company_id,
           least(coalesce(o.points, 0), 100) AS overdue_score,
           least(coalesce(g.points, 0), 100) AS gap_score,
           least(coalesce(e.points, 0), 100) AS escalation_score,
           coalesce(100.0 * h.missed / nullif(h.due, 0), 0) AS historical_score,
           jsonb_build_object(
               'overdue', jsonb_build_object(
                   'items', coalesce(o.items, 0), 'to_7_days', coalesce(o.to_7_days, 0),
                   'to_30_days', coalesce(o.to_30_days, 0), 'beyond_30_days', coalesce(o.beyond, 0)
               ),
               'evidence_gaps', jsonb_build_object(
                   'critical', coalesce(g.critical, 0), 'high', coalesce(g.high, 0),
                   'medium', coalesce(g.medium, 0), 'low', coalesce(g.low, 0)
               ),
               'escalations', jsonb_build_object(
                   'entities', coalesce(e.entities, 0), 'highest_level', coalesce(e.highest, 0)
               ),
               'history', jsonb_build_object('deadlines', coalesce(h.due, 0), 'missed', coalesce(h.missed, 0)),
               'clocks', jsonb_build_object(
                   'red', coalesce(c.red, 0), 'amber', coalesce(c.amber, 0), 'green', coalesce(c.green, 0)
               )
           ) AS factors
    FROM scored AS s
    LEFT JOIN overdue AS o ON o.site_id = s.id
    LEFT JOIN gaps AS g ON g.site_id = s.id
    LEFT JOIN escalated AS e ON e.site_id = s.id
    LEFT JOIN history AS h ON h.site_id = s.id
    LEFT JOIN clocks AS c ON c.site_id = s.id
),
totals AS (
    SELECT p.*,
           round(
               0.40 * p.overdue_score + 0.25 * p.gap_score + 0.20 * p.escalation_score + 0.15 * p.historical_score, 1
           ) AS risk_score
    FROM parts AS p
),
banded AS (
    SELECT t.*,
           CASE
               -- the column's type for the words, which may be an enum
               WHEN false THEN (NULL::risk_scores).risk_band
               WHEN t.risk_score <= 25 THEN 'LOW'
               WHEN t.risk_score <= 50 THEN 'MEDIUM'
               WHEN t.risk_score <= 75 THEN 'HIGH'
               ELSE 'CRITICAL'
           END AS risk_band
    FROM totals AS t
)
INSERT INTO risk_scores AS r (
    company_id, site_id, score_date, risk_score, risk_band, overdue_score, evidence_gap_score, escalation_score,
    historical_score, factors, consecutive_high_days, calculated_at
)
SELECT b.company_id, b.id, CAST(:today AS date), b.risk_score, b.risk_band, b.overdue_score, b.gap_score,
       b.escalation_score, round(b.historical_score, 1), b.factors,
       CASE
           WHEN b.risk_band NOT IN ('HIGH', 'CRITICAL') THEN 0
           WHEN y.risk_band IN ('HIGH', 'CRITICAL') THEN 1 + greatest(y.consecutive_high_days, 1)
           ELSE 1
       END,
       CAST(:as_of AS timestamptz)
FROM banded AS b
LEFT JOIN risk_scores AS y ON y.site_id = b.id AND y.score_date = CAST(:today AS date) - 1
ORDER BY b.id
ON CONFLICT (site_id, score_date) DO UPDATE
SET risk_score = EXCLUDED.risk_score,
    risk_band = EXCLUDED.risk_band,
    overdue_score = EXCLUDED.overdue_score,
    evidence_gap_score = EXCLUDED.evidence_gap_score,
    escalation_score = EXCLUDED.escalation_score,
    historical_score = EXCLUDED.historical_score,
    factors = EXCLUDED.factors,
    consecutive_high_days = EXCLUDED.consecutive_high_days,
    calculated_at = EXCLUDED.calculated_at
WHERE (
    r.risk_score, r.risk_band, r.overdue_score, r.evidence_gap_score, r.escalation_score, r.historical_score, r.factors,
    r.consecutive_high_days
) IS DISTINCT FROM (
    EXCLUDED.risk_score, EXCLUDED.risk_band, EXCLUDED.overdue_score, EXCLUDED.evidence_gap_score,
    EXCLUDED.escalation_score, EXCLUDED.historical_score, EXCLUDED.factors, EXCLUDED.consecutive_high_days
)
