-- a row is a source that was scanned before; `fresh` says that it was read since the job was made
SELECT s.source, s.etag, s.last_modified, s.position,
       coalesce(s.last_error IS NULL AND s.read_at >= CAST(:made_at AS timestamptz), false) AS fresh
FROM scan_state AS s
WHERE s.source = ANY (CAST(:sources AS text[]))
