-- a trigger on a table of somebody's own would write into the trail what never happened
REVOKE ALL ON FUNCTION {moved}() FROM PUBLIC
