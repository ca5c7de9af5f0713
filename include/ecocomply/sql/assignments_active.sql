-- a row is how many assignments of consultants are active
SELECT count(*)
FROM consultant_client_assignments AS a
WHERE a.status = 'ACTIVE'
  AND (CAST(:consultant_id AS uuid) IS NULL OR a.consultant_id = CAST(:consultant_id AS uuid))
