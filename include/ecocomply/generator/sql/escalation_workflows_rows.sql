-- a row is how a company escalates: reports sooner than everything else
INSERT INTO escalation_workflows (
    id, company_id, workflow_name, obligation_category, level_1_days, level_2_days, level_3_days, level_4_days,
    level_1_recipients
)
SELECT pg_temp.make_id('workflow', 2 * c + k), pg_temp.make_id('company', c),
       CASE WHEN k = 0 THEN 'Everything' ELSE 'Reports' END, CASE WHEN k = 1 THEN 'REPORTING' END,
       CASE WHEN k = 0 THEN 7 ELSE 3 END, CASE WHEN k = 0 THEN 14 END, 21, 30,
       ARRAY[pg_temp.make_id('user', 9 * c - 5)]
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN generate_series(0, 1) AS k
