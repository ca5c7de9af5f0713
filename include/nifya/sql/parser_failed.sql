-- a row is a parser that failed once more; too often in a row, it is left alone for a while
INSERT INTO parser_breakers AS b (parser, failures, last_error)
VALUES (:parser, 1, :error)
ON CONFLICT (parser) DO UPDATE
SET failures = b.failures + 1,
    open_until = CASE
        WHEN b.failures + 1 >= :most THEN now() + make_interval(secs => :open_seconds)
    END,
    probe_until = NULL,
    last_error = excluded.last_error,
    updated_at = clock_timestamp()
