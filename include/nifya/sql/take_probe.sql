-- a row is a parser that was left alone long enough, and that this caller alone may ask now
UPDATE parser_breakers
SET probe_until = now() + make_interval(secs => :probe_seconds),
    updated_at = clock_timestamp()
WHERE parser = :parser
  AND open_until <= now()
  AND coalesce(probe_until, '-infinity') <= now()
