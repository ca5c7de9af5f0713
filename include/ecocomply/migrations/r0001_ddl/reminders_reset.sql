CREATE OR REPLACE FUNCTION reminders_reset() RETURNS trigger LANGUAGE plpgsql AS $reset$
BEGIN
    NEW.reminders_sent := '{{}}';
    RETURN NEW;
END
$reset$
