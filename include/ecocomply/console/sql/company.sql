-- one row: a company with how many people and sites it has
SELECT c.id, c.name, c.is_active, c.deleted_at, c.created_at, c.evidence_retention_years,
       (SELECT count(*) FROM users AS u WHERE u.company_id = c.id AND u.is_active AND u.deleted_at IS NULL) AS people,
       (SELECT count(*) FROM sites AS s WHERE s.company_id = c.id AND s.deleted_at IS NULL) AS sites
FROM companies AS c
WHERE c.id = :company_id
