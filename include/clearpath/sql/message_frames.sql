-- a row is what the messages of one template have in common, under its sha256
SELECT name, content
FROM email_frames
WHERE name = ANY (CAST(:names AS text[]))
