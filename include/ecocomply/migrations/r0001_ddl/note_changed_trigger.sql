CREATE OR REPLACE TRIGGER consignment_note_changed BEFORE UPDATE OF
    waste_stream_id, carrier_id, consignment_date, quantity, unit, ewc_code, destination_site_id
ON consignment_notes FOR EACH ROW
WHEN (
    (OLD.waste_stream_id, OLD.carrier_id, OLD.consignment_date, OLD.quantity, OLD.unit::text, OLD.ewc_code,
        OLD.destination_site_id)
    IS DISTINCT FROM
    (NEW.waste_stream_id, NEW.carrier_id, NEW.consignment_date, NEW.quantity, NEW.unit::text, NEW.ewc_code,
        NEW.destination_site_id)
)
EXECUTE FUNCTION consignment_note_changed()
