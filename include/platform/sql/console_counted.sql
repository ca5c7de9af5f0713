-- a row is what the runs of a DAG have counted under one name since an instant
SELECT r.dag_id, c.name, sum(c.number::bigint)::bigint AS number
FROM run_summary AS r
CROSS JOIN LATERAL jsonb_each_text(r.counts) AS c (name, number)
WHERE r.dag_id = ANY (CAST(:dag_ids AS text[]))
  AND r.started_at >= CAST(:since AS timestamptz)
  AND NOT r.preview
  AND jsonb_typeof(r.counts) = 'object'
  AND c.name = ANY (CAST(:names AS text[]))
  AND c.number ~ '^[0-9]{1,15}$'
GROUP BY r.dag_id, c.name
HAVING sum(c.number::bigint) > 0
ORDER BY r.dag_id, c.name
