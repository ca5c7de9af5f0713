-- a row is an open deadline whose status has to follow its date
SELECT d.id
FROM deadlines AS d
WHERE (
      (d.status IN ('PENDING', 'DUE_SOON') AND d.due_date < CAST(:today AS date))
      OR (
          d.status IN ('PENDING', 'DUE_SOON')
          AND d.due_date >= CAST(:today AS date)
          AND (d.status = 'DUE_SOON') <> (d.due_date <= CAST(:today AS date) + 3)
      )
      -- moved; what was found to have passed, a run of an earlier day leaves
      OR (
          d.status = 'OVERDUE'
          AND d.due_date >= CAST(:today AS date)
          AND (
              d.breach_detected_at IS NULL
              OR CAST(d.breach_detected_at AT TIME ZONE 'UTC' AS date) <= d.due_date
          )
      )
  )
  AND (CAST(:company_id AS uuid) IS NULL OR d.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR d.site_id = CAST(:site_id AS uuid))
ORDER BY d.id
