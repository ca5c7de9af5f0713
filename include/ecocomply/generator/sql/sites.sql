-- how many sites, three a company
CREATE OR REPLACE FUNCTION pg_temp.sites() RETURNS integer LANGUAGE sql STABLE AS $body$
    SELECT 3 * pg_temp.companies()
$body$
