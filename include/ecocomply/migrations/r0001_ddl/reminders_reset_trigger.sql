CREATE OR REPLACE TRIGGER reminders_reset BEFORE UPDATE OF target_date ON compliance_clocks_universal
FOR EACH ROW WHEN (OLD.target_date IS DISTINCT FROM NEW.target_date) EXECUTE FUNCTION reminders_reset()
