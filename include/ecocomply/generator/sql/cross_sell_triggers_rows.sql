-- a row is a module that a company's permit speaks of
INSERT INTO cross_sell_triggers (id, company_id, target_module_id, trigger_source, detected_keywords, confidence)
SELECT pg_temp.make_id('offer', c), pg_temp.make_id('company', c), m.id,
       pg_temp.make_id('document', 12 * c - 11)::text, '{generator,chp}', 0.4
FROM generate_series(1, pg_temp.companies()) AS c
JOIN modules AS m ON m.module_code = 'MODULE_3'
