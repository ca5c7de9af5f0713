-- how many companies
CREATE OR REPLACE FUNCTION pg_temp.companies() RETURNS integer LANGUAGE sql STABLE AS $body$
    SELECT current_setting('almanac.generator_companies')::integer
$body$
