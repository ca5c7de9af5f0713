-- With the rights of its owner: who looks after the companies that the session's user may see. Those are users of other
-- companies, whose rows the user sees none of; the service sees them anyway, and gets nothing here.
CREATE OR REPLACE FUNCTION ecocomply_consultants()
RETURNS TABLE (company_id uuid, user_id uuid, email text, phone text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $consultants$
    SELECT DISTINCT a.company_id, u.id, u.email::text, u.phone::text
    FROM public.consultant_client_assignments AS a
    JOIN public.users AS u ON u.id = a.consultant_id AND u.is_active AND u.deleted_at IS NULL
    JOIN public.user_roles AS r ON r.user_id = u.id AND r.role::text = 'CONSULTANT'
    WHERE a.status::text = 'ACTIVE'
      AND a.company_id = ANY (public.ecocomply_companies())
$consultants$
