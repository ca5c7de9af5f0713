-- the id of the n-th of its kind
CREATE OR REPLACE FUNCTION pg_temp.make_id(kind text, n bigint) RETURNS uuid LANGUAGE sql STABLE AS $body$
    SELECT md5(current_setting('almanac.generator_seed') || '/' || kind || '/' || n)::uuid
$body$
