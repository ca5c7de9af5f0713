-- a row is a test of what leaves the stack; some generators have none
INSERT INTO stack_tests (
    id, generator_id, test_date, nox_rate, so2_rate, co_rate, particulates_rate, compliance_status
)
SELECT pg_temp.make_id('stack test', n), pg_temp.make_id('generator', n),
       pg_temp.today() - 30 - pg_temp.roll('stack test', n, 300), 1.2 + pg_temp.roll('nox', n, 20) / 10.0, 0.05, 0.4,
       0.02, CASE WHEN pg_temp.roll('stack', n, 8) = 0 THEN 'FAIL' ELSE 'PASS' END
FROM generate_series(1, 2 * pg_temp.sites()) AS n
WHERE pg_temp.roll('tested', n, 6) > 0
