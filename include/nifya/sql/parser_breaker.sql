-- a row says whether a parser has failed too often to be asked by everybody, and whether nobody may ask it now
SELECT open_until IS NOT NULL AS is_open,
       coalesce(open_until > now(), FALSE) OR coalesce(probe_until > now(), FALSE) AS is_left_alone
FROM parser_breakers
WHERE parser = :parser
