-- a row is one of the deadlines within 30 days without a link to evidence
INSERT INTO evidence_gaps (
    id, company_id, site_id, obligation_id, deadline_id, due_date, gap_type, severity, detected_at
)
SELECT md5('gap' || d.id)::uuid, d.company_id, d.site_id, d.obligation_id, d.id, d.due_date, 'NO_EVIDENCE',
       CASE WHEN d.due_date <= pg_temp.today() + 7 THEN 'CRITICAL' WHEN d.due_date <= pg_temp.today() + 14 THEN 'HIGH'
            ELSE 'MEDIUM' END,
       pg_temp.at(pg_temp.today() - 1, 18)
FROM deadlines AS d
JOIN obligations AS o ON o.id = d.obligation_id AND o.evidence_required
WHERE d.status IN ('PENDING', 'DUE_SOON') AND d.due_date <= pg_temp.today() + 30
  AND NOT EXISTS (SELECT FROM obligation_evidence_links AS l WHERE l.obligation_id = o.id AND l.unlinked_at IS NULL)
  -- the rest is left for the job to find
  AND left(d.id::text, 1) < 'b'
