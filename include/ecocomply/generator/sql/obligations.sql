-- how many obligations
CREATE OR REPLACE FUNCTION pg_temp.obligations() RETURNS integer LANGUAGE sql STABLE AS $body$
    SELECT current_setting('almanac.generator_obligations')::integer
$body$
