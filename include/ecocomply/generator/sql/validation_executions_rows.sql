-- a row is a rule that a note was checked by
INSERT INTO validation_executions (
    id, validation_rule_id, entity_type, entity_id, execution_date, result, created_at
)
SELECT pg_temp.make_id('execution', 100 * s + k), pg_temp.make_id('rule', 10 * pg_temp.company_of_site(s)),
       'CONSIGNMENT_NOTE', note.id, note.pre_validated_at, 'PASS', note.pre_validated_at
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN generate_series(5, 8) AS k
JOIN consignment_notes AS note ON note.id = pg_temp.make_id('note', 100 * s + k)
