-- a row is a registration that has been broken off
INSERT INTO registration_session (id, email, "currentStage")
SELECT 'session-' || n, 'person' || n || '@example.test', 'step_2'
FROM generate_series(1, CAST(:tasks AS integer)) AS n
