-- a row is what a consultant saw of a company that is no client any more
DELETE FROM consultant_dashboard AS d
WHERE d.consultant_id = ANY (CAST(:ids AS uuid[]))
  AND NOT EXISTS (
      SELECT FROM consultant_client_assignments AS a
      WHERE a.consultant_id = d.consultant_id
        AND a.company_id = d.company_id
        AND a.status = 'ACTIVE'
  )
