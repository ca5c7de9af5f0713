-- a row is a registration session that still exists, with the stage that it has reached
SELECT s.id, s.email, s."currentStage"::text AS stage
FROM registration_session AS s
WHERE s.id = ANY (CAST(:ids AS text[]))
