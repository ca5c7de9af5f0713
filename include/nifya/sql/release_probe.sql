-- a row is a parser whose probe brought no answer, through no fault of its own: another may probe
UPDATE parser_breakers
SET probe_until = NULL,
    updated_at = clock_timestamp()
WHERE parser = :parser
  AND open_until IS NOT NULL
