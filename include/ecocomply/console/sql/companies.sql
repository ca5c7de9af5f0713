-- a row is a company, by name, with how many sites it has and how many deadlines of it are overdue
WITH page AS MATERIALIZED (
    SELECT c.id, c.name, c.is_active, c.deleted_at
    FROM companies AS c
    WHERE (CAST(:company_ids AS uuid[]) IS NULL OR c.id = ANY (CAST(:company_ids AS uuid[])))
      AND (
          CAST(:after_name AS text) IS NULL
          OR (c.name, c.id) > (CAST(:after_name AS text), CAST(:after_id AS uuid))
      )
    ORDER BY c.name, c.id
    LIMIT :limit
),
-- once for the page: what is overdue has an index, and is few
overdue AS (
    SELECT d.company_id, count(*) AS overdue
    FROM deadlines AS d
    WHERE d.status = 'OVERDUE'
      AND d.company_id IN (SELECT p.id FROM page AS p)
    GROUP BY d.company_id
),
sites_of AS (
    SELECT s.company_id, count(*) AS sites
    FROM sites AS s
    WHERE s.deleted_at IS NULL
      AND s.company_id IN (SELECT p.id FROM page AS p)
    GROUP BY s.company_id
)
SELECT p.id, p.name, p.is_active, p.deleted_at, coalesce(s.sites, 0) AS sites, coalesce(o.overdue, 0) AS overdue
FROM page AS p
LEFT JOIN sites_of AS s ON s.company_id = p.id
LEFT JOIN overdue AS o ON o.company_id = p.id
ORDER BY p.name, p.id
