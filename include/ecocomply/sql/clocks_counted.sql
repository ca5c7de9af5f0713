-- a row is how many clocks run, and how many of them are of each criticality
SELECT
    count(*) AS running,
    count(*) FILTER (WHERE c.criticality = 'RED') AS red,
    count(*) FILTER (WHERE c.criticality = 'AMBER') AS amber,
    count(*) FILTER (WHERE c.criticality = 'GREEN') AS green
FROM compliance_clocks_universal AS c
WHERE c.status IN ('ACTIVE', 'OVERDUE')
  AND CAST(:today AS date) IS NOT NULL
  AND (CAST(:company_id AS uuid) IS NULL OR c.company_id = CAST(:company_id AS uuid))
  AND (CAST(:site_id AS uuid) IS NULL OR c.site_id = CAST(:site_id AS uuid))
  AND (CAST(:module_id AS uuid) IS NULL OR c.module_id = CAST(:module_id AS uuid))
