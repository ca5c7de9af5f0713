CREATE OR REPLACE FUNCTION background_job_status() RETURNS trigger LANGUAGE plpgsql AS $status$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.status = NEW.status AND OLD.progress IS NOT DISTINCT FROM NEW.progress THEN
        RETURN NULL;
    END IF;
    PERFORM pg_notify('ecocomply_job_status', jsonb_build_object(
        'job_id', NEW.id,
        'status', NEW.status,
        'progress', CASE WHEN NEW.progress IS NOT NULL THEN
            jsonb_build_object('current', NEW.progress -> 'current', 'total', NEW.progress -> 'total')
        END,
        'updated_at', NEW.updated_at
    )::text);
    RETURN NULL;
END
$status$
