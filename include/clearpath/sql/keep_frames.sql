-- a row is what the messages of one template have in common, under its sha256
INSERT INTO email_frames (name, content)
SELECT f.name, f.content
FROM unnest(CAST(:names AS text[]), CAST(:contents AS text[])) AS f (name, content)
ON CONFLICT DO NOTHING
