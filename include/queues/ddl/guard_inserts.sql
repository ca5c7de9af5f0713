CREATE OR REPLACE TRIGGER queue_guard_inserts BEFORE INSERT ON {table} FOR EACH ROW
WHEN (NEW.{status}::text IS DISTINCT FROM {due_word})
EXECUTE FUNCTION {refuse}()
