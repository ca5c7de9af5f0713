-- a row is what a consultant saw of a company that is no client any more: let go of, deleted, or the role is lost
DELETE FROM consultant_dashboard AS d
WHERE d.consultant_id = ANY (CAST(:ids AS uuid[]))
  AND NOT EXISTS (
      SELECT FROM consultant_client_assignments AS a
      JOIN companies AS c ON c.id = a.company_id
      JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
      WHERE a.consultant_id = d.consultant_id
        AND a.company_id = d.company_id
        AND a.status = 'ACTIVE'
        AND (c.deleted_at IS NULL OR c.deleted_at > :as_of)
  )
