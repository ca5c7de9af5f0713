CREATE OR REPLACE FUNCTION {refuse}() RETURNS trigger LANGUAGE plpgsql AS $refuse$
BEGIN
    RAISE EXCEPTION '%: row % can''t go from % to %',
        {table_word},
        coalesce(to_jsonb(OLD), to_jsonb(NEW)) ->> {key_word},
        coalesce(to_jsonb(OLD) ->> {status_word}, 'nothing'),
        to_jsonb(NEW) ->> {status_word}
        USING ERRCODE = 'check_violation';
END
$refuse$
