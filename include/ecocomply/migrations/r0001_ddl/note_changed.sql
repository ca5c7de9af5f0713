-- A consignment note that says something else is checked anew.
CREATE OR REPLACE FUNCTION consignment_note_changed() RETURNS trigger LANGUAGE plpgsql AS $changed$
BEGIN
    IF NEW.pre_validation_status = OLD.pre_validation_status THEN
        NEW.pre_validation_status := 'NOT_VALIDATED';
    END IF;
    RETURN NEW;
END
$changed$
