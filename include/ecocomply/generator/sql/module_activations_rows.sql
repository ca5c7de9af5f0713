-- a row is a module that a company has; every third one has given up generators, so that its permits speak of them
INSERT INTO module_activations (id, company_id, module_id, status)
SELECT pg_temp.make_id('activation', 4 * c + m), pg_temp.make_id('company', c), module.id,
       CASE
           WHEN m > 1 AND pg_temp.roll('activation', 4 * c + m, 5) = 0 OR m = 3 AND c % 3 = 2 THEN 'INACTIVE'
           ELSE 'ACTIVE'
       END
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(1, 4) AS m
JOIN modules AS module ON module.module_code = 'MODULE_' || m
