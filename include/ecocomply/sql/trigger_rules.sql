-- a row is a rule that listens to events
SELECT r.id, r.company_id, r.rule_name, r.trigger_type::text AS trigger_type,
       r.target_entity_type::text AS target_entity_type, r.rule_config::text AS rule_config,
       r.template_data::text AS template_data
FROM recurrence_trigger_rules AS r
WHERE r.id = ANY (CAST(:ids AS uuid[]))
