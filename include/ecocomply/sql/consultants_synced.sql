-- a row is a consultant all of whose clients were looked at as of then, with the sums over them
SELECT d.consultant_id AS id, u.company_id, count(*) AS client_count, sum(d.overdue_count) AS overdue_count,
       sum(d.due_soon_count) AS due_soon_count
FROM consultant_dashboard AS d
JOIN users AS u ON u.id = d.consultant_id
WHERE (CAST(:consultant_id AS uuid) IS NULL OR d.consultant_id = CAST(:consultant_id AS uuid))
  AND (CAST(:after AS uuid) IS NULL OR d.consultant_id > CAST(:after AS uuid))
GROUP BY d.consultant_id, u.company_id
HAVING bool_and(d.synced_at = :as_of)
ORDER BY d.consultant_id
LIMIT :limit
