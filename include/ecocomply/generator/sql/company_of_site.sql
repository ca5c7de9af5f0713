-- the company that a site belongs to
CREATE OR REPLACE FUNCTION pg_temp.company_of_site(site integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $body$
    SELECT (site + 2) / 3
$body$
