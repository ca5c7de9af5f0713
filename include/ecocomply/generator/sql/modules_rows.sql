-- a row is one of the four modules
INSERT INTO modules (id, module_code, module_name, cross_sell_keywords)
VALUES
    (pg_temp.make_id('module', 1), 'MODULE_1', 'Environmental permits', '{}'),
    (pg_temp.make_id('module', 2), 'MODULE_2', 'Trade effluent',
        '{trade effluent,discharge consent,water company,sewer,effluent,discharge to drain}'),
    (pg_temp.make_id('module', 3), 'MODULE_3', 'Generators',
        '{generator,mcpd,standby power,chp,combustion plant,back-up generator}'),
    (pg_temp.make_id('module', 4), 'MODULE_4', 'Hazardous waste', '{hazardous waste,consignment note}')
ON CONFLICT DO NOTHING
