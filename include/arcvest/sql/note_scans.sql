-- a row is a source that was scanned: what it wants to hear next time, or why it could not be read
INSERT INTO scan_state AS s (source, etag, last_modified, position, read_at, last_error)
SELECT f.source, f.etag, f.last_modified, f.position,
       CASE WHEN f.error IS NULL THEN clock_timestamp() END, f.error
FROM unnest(
    CAST(:sources AS text[]), CAST(:etags AS text[]), CAST(:modified AS text[]), CAST(:positions AS text[]),
    CAST(:errors AS text[])
) AS f (source, etag, last_modified, position, error)
ORDER BY f.source
ON CONFLICT (source) DO UPDATE
SET etag = CASE WHEN excluded.last_error IS NULL THEN excluded.etag ELSE s.etag END,
    last_modified = CASE WHEN excluded.last_error IS NULL THEN excluded.last_modified ELSE s.last_modified END,
    position = CASE WHEN excluded.last_error IS NULL THEN excluded.position ELSE s.position END,
    read_at = coalesce(excluded.read_at, s.read_at),
    last_error = excluded.last_error
