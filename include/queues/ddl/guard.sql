CREATE OR REPLACE FUNCTION {refuse}() RETURNS trigger LANGUAGE plpgsql AS $refuse$
BEGIN
    IF TG_OP = 'UPDATE' AND to_jsonb(OLD) -> {key_word} IS DISTINCT FROM to_jsonb(NEW) -> {key_word} THEN
        RAISE EXCEPTION '%: row % can''t become row %: its trail is kept under its key',
            {table_word},
            to_jsonb(OLD) ->> {key_word},
            to_jsonb(NEW) ->> {key_word}
            USING ERRCODE = 'check_violation';
    END IF;
    RAISE EXCEPTION '%: row % can''t go from % to %',
        {table_word},
        coalesce(to_jsonb(OLD), to_jsonb(NEW)) ->> {key_word},
        coalesce(to_jsonb(OLD) ->> {status_word}, 'nothing'),
        to_jsonb(NEW) ->> {status_word}
        USING ERRCODE = 'check_violation';
END
$refuse$
