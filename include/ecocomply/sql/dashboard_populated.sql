-- a row is whether the dashboard has been filled since it was made
SELECT c.relispopulated FROM pg_class AS c WHERE c.oid = 'compliance_clock_dashboard'::regclass
