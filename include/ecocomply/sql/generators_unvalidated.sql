-- a row is a generator with runs that were written down by hand, and that nobody has validated for too long
SELECT g.id, g.company_id, g.site_id, g.generator_identifier, count(*) AS pending_count,
       min(m.run_date) AS oldest_entry_date,
       (array_agg(m.id ORDER BY m.run_date, m.id))[1:100] AS pending_entry_ids
FROM runtime_monitoring AS m
JOIN generators AS g ON g.id = m.generator_id
WHERE m.validation_status = 'PENDING'
  AND m.data_source = 'MANUAL'
  AND m.created_at < CAST(:before AS timestamptz)
  -- what had waited for too long before the adoption is history
  AND m.created_at >= (SELECT a.at FROM adoption AS a) - CAST(:hours AS double precision) * interval '1 hour'
  AND g.deleted_at IS NULL
  AND (CAST(:ids AS uuid[]) IS NULL OR g.id = ANY (CAST(:ids AS uuid[])))
  AND (CAST(:company_id AS uuid) IS NULL OR g.company_id = CAST(:company_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR g.id > CAST(:after AS uuid))
GROUP BY g.id
ORDER BY g.id
LIMIT :limit
