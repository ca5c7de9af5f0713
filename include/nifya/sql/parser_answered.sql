-- a row is a parser that had failed and answers again
UPDATE parser_breakers
SET failures = 0,
    open_until = NULL,
    probe_until = NULL,
    updated_at = clock_timestamp()
WHERE parser = :parser
  AND (failures > 0 OR open_until IS NOT NULL)
