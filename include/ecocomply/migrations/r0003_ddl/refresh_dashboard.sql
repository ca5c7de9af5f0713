-- With the rights of the view's owner: the jobs' role may look at the view, and only an owner may refresh it. Beside its
-- readers, unless there is nothing in it yet that could be read.
CREATE OR REPLACE FUNCTION refresh_compliance_dashboard(beside_readers boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $refresh$
BEGIN
    IF beside_readers AND (
        SELECT c.relispopulated FROM pg_class AS c WHERE c.oid = 'public.compliance_clock_dashboard'::regclass
    ) THEN
        REFRESH MATERIALIZED VIEW CONCURRENTLY public.compliance_clock_dashboard;
    ELSE
        REFRESH MATERIALIZED VIEW public.compliance_clock_dashboard;
    END IF;
END
$refresh$
