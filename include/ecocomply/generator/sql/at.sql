-- an hour of a day
CREATE OR REPLACE FUNCTION pg_temp.at(day date, hour integer) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $body$
    SELECT (day + make_interval(hours => hour)) AT TIME ZONE 'UTC'
$body$
