-- a session with this order number is refused by the database, as an application's own rule might refuse it
CREATE TRIGGER refuse_session BEFORE UPDATE ON test_sessions FOR EACH ROW
WHEN (OLD.clearpath_order_id = 'BAD') EXECUTE FUNCTION refuse_session()
