-- one of some words, the same for the same what and n
CREATE OR REPLACE FUNCTION pg_temp.pick(what text, n bigint, choices text[]) RETURNS text LANGUAGE sql STABLE AS $body$
    SELECT choices[1 + pg_temp.roll(what, n, cardinality(choices))]
$body$
