-- Which companies' rows the session's user may see: the user's own, and a consultant's active clients.
-- `almanac.company_id` narrows that to one of them, and widens nothing.
CREATE OR REPLACE FUNCTION ecocomply_companies() RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $seen$
    SELECT coalesce(array_agg(DISTINCT seen.company_id), '{{}}')
    FROM (
        SELECT u.company_id
        FROM users AS u
        WHERE u.id = nullif(current_setting('almanac.user_id', true), '')::uuid
          AND u.is_active AND u.deleted_at IS NULL
        UNION ALL
        SELECT a.company_id
        FROM consultant_client_assignments AS a
        JOIN users AS u ON u.id = a.consultant_id AND u.is_active AND u.deleted_at IS NULL
        JOIN user_roles AS r ON r.user_id = u.id AND r.role = 'CONSULTANT'
        WHERE a.consultant_id = nullif(current_setting('almanac.user_id', true), '')::uuid
          AND a.status = 'ACTIVE'
    ) AS seen
    JOIN companies AS c ON c.id = seen.company_id AND c.deleted_at IS NULL
    WHERE c.id = coalesce(nullif(current_setting('almanac.company_id', true), '')::uuid, c.id)
$seen$
