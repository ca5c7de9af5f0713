-- a row is a rule that some of these companies' consignment notes are checked by
SELECT r.id, r.company_id, r.waste_stream_id, r.rule_name, r.rule_type::text AS rule_type, r.rule_config::text AS rule_config,
       r.severity::text AS severity
FROM validation_rules AS r
WHERE r.is_active
  AND r.company_id = ANY (CAST(:companies AS uuid[]))
  AND (r.waste_stream_id IS NULL OR r.waste_stream_id = ANY (CAST(:streams AS uuid[])))
ORDER BY r.company_id, r.waste_stream_id NULLS LAST, r.id
