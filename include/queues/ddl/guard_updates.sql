CREATE OR REPLACE TRIGGER queue_guard_updates BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (OLD.{key} IS DISTINCT FROM NEW.{key}
    OR OLD.{status} IS DISTINCT FROM NEW.{status}
    AND ((OLD.{status}::text, NEW.{status}::text) IN ({allowed})) IS NOT TRUE)
EXECUTE FUNCTION {refuse}()
