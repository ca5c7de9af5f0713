-- the day that the data is of
CREATE OR REPLACE FUNCTION pg_temp.today() RETURNS date LANGUAGE sql STABLE AS $body$
    SELECT current_setting('almanac.generator_today')::date
$body$
