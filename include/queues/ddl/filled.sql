CREATE OR REPLACE FUNCTION {filled}() RETURNS trigger LANGUAGE plpgsql AS $filled$
BEGIN
    PERFORM pg_notify({channel_word}, '');
    RETURN NULL;
END
$filled$
