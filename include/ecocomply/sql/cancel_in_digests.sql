-- a row is what stands in a digest that nobody has claimed, of a company that its user no longer looks after
UPDATE notifications AS n
SET status = 'CANCELLED',
    status_reason = 'the user no longer looks after this company',
    digest_id = NULL,
    updated_at = clock_timestamp()
FROM digests AS d
JOIN users AS u ON u.id = d.user_id
WHERE d.id = ANY (CAST(:ids AS uuid[]))
  AND d.status = 'queued'
  AND d.batch_id IS NULL
  AND n.digest_id = d.id
  AND n.status = 'PENDING'
  AND NOT (
      u.company_id = n.company_id
      OR EXISTS (
          SELECT FROM consultant_client_assignments AS a
          JOIN user_roles AS r ON r.user_id = a.consultant_id AND r.role::text = 'CONSULTANT'
          WHERE a.consultant_id = u.id
            AND a.company_id = n.company_id
            AND a.status::text = 'ACTIVE'
      )
  )
