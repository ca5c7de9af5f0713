-- a row is how many generators run
SELECT count(*)
FROM generators AS g
WHERE g.is_active
  AND g.deleted_at IS NULL
  AND (CAST(:company_id AS uuid) IS NULL OR g.company_id = CAST(:company_id AS uuid))
  AND (CAST(:generator_id AS uuid) IS NULL OR g.id = CAST(:generator_id AS uuid))
