CREATE OR REPLACE TRIGGER notifications_ranked BEFORE INSERT OR UPDATE OF priority ON notifications
FOR EACH ROW EXECUTE FUNCTION notifications_ranked()
