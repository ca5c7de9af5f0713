-- a row is something that a company's owner did, or the service
INSERT INTO audit_logs (id, company_id, user_id, action_type, entity_type, entity_id, created_at)
SELECT pg_temp.make_id('audit', 10 * n + k), CASE WHEN n > 0 THEN pg_temp.make_id('company', n) END,
       CASE WHEN n > 0 THEN pg_temp.make_id('user', 9 * n - 8) END,
       CASE WHEN n > 0 THEN 'AUDIT_PACK_GENERATED' ELSE 'JOB_ERROR' END,
       CASE WHEN n > 0 THEN 'AUDIT_PACK' ELSE 'BACKGROUND_JOB' END, pg_temp.make_id('pack', 2 * n),
       pg_temp.at(pg_temp.today() - k, 11)
FROM generate_series(0, pg_temp.companies()) AS n
CROSS JOIN generate_series(1, 3) AS k
