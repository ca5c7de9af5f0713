-- a row is the idea that a person asks for
SELECT i.id, i.status::text AS status
FROM idea_queue AS i
WHERE i.id = CAST(:idea AS uuid)
FOR UPDATE
