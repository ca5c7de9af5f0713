CREATE OR REPLACE FUNCTION notifications_ranked() RETURNS trigger LANGUAGE plpgsql AS $ranked$
BEGIN
    NEW.urgency := coalesce(
        array_position(ARRAY['LOW', 'NORMAL', 'HIGH', 'CRITICAL', 'URGENT'], NEW.priority::text), 2
    );
    RETURN NEW;
END
$ranked$
