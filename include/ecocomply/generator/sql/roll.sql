-- a number from 0 to sides - 1, the same for the same what and n
CREATE OR REPLACE FUNCTION pg_temp.roll(what text, n bigint, sides integer) RETURNS integer LANGUAGE sql STABLE AS $body$
    SELECT (('x' || left(md5(current_setting('almanac.generator_seed') || '?' || what || '?' || n), 8))::bit(32)::bigint
        % sides)::integer
$body$
