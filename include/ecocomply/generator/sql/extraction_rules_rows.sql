-- a row is a rule of the library
INSERT INTO extraction_rules (id, module_code, rule_name, pattern, extraction, confidence, rule_library_version)
VALUES
    (pg_temp.make_id('extraction rule', 1), 'MODULE_1', 'annual report', 'annual (monitoring )?report',
        '{"category": "REPORTING", "frequency": "ANNUAL"}', 0.95, '1.6'),
    (pg_temp.make_id('extraction rule', 2), 'MODULE_2', 'weekly sample', 'sampled? (at least )?weekly',
        '{"category": "MONITORING", "frequency": "WEEKLY"}', 0.92, '1.6')
