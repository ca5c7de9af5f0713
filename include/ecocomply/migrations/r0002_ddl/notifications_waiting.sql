-- Once a statement, heard at its commit: something is to be delivered.
CREATE OR REPLACE FUNCTION notifications_waiting() RETURNS trigger LANGUAGE plpgsql AS $waiting$
BEGIN
    IF EXISTS (SELECT FROM new_rows AS n WHERE n.status IN ('PENDING', 'QUEUED')) THEN
        PERFORM pg_notify('ecocomply_notifications', '');
    END IF;
    RETURN NULL;
END
$waiting$
