CREATE OR REPLACE TRIGGER notifications_copied AFTER UPDATE OF status ON notifications FOR EACH ROW
WHEN (NEW.status = 'FAILED' AND OLD.status IS DISTINCT FROM NEW.status AND NEW.channel <> 'IN_APP')
EXECUTE FUNCTION notifications_copied()
