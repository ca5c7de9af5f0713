-- a row is a rule of a company, or of its first stream alone
INSERT INTO validation_rules (id, company_id, waste_stream_id, rule_name, rule_type, rule_config, severity)
SELECT pg_temp.make_id('rule', 10 * c + rule.place), pg_temp.make_id('company', c),
       CASE WHEN rule.place = 6 THEN pg_temp.make_id('stream', 6 * c - 4) END, rule.name, rule.rule_type,
       CASE WHEN rule.place = 4 THEN jsonb_build_object(
           'allowed_site_ids', jsonb_build_array(pg_temp.make_id('destination', 0), pg_temp.make_id('destination', 1))
       ) ELSE rule.config::jsonb END, rule.severity
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN (VALUES
    (0, 'Licensed carrier', 'CARRIER_LICENCE', '{"require_upper_tier": false}', 'ERROR'),
    (1, 'Load', 'VOLUME_LIMIT', '{"max_volume": 100, "unit": "TONNES"}', 'ERROR'),
    (2, 'Stored too long', 'STORAGE_DURATION', '{"max_storage_days": 30}', 'WARNING'),
    (3, 'Known waste', 'EWC_CODE', '{"allowed_codes": ["130205*", "200101"]}', 'ERROR'),
    (4, 'Where it goes', 'DESTINATION', '{"allowed_site_ids": []}', 'INFO'),
    (5, 'Oil in litres', 'CUSTOM', '{"expression": "unit == ''LITRES'' || quantity < 20.0"}', 'WARNING'),
    (6, 'Load of oil', 'VOLUME_LIMIT', '{"max_volume": 20, "unit": "TONNES"}', 'ERROR')
) AS rule (place, name, rule_type, config, severity)
