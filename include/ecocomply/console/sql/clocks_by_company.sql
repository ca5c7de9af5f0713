-- a row is a company with the clocks that the dashboard has of it, those with the most red ones first
WITH summed AS (
    SELECT d.company_id AS id, sum(d.total_clocks)::bigint AS total, sum(d.red_count)::bigint AS red,
           sum(d.amber_count)::bigint AS amber, sum(d.green_count)::bigint AS green,
           sum(d.active_count)::bigint AS active, sum(d.overdue_count)::bigint AS overdue,
           sum(d.completed_count)::bigint AS completed, min(d.next_target_date) AS next_target_date
    FROM compliance_clock_dashboard AS d
    WHERE CAST(:company_ids AS uuid[]) IS NULL
       OR d.company_id = ANY (CAST(:company_ids AS uuid[]))
    GROUP BY d.company_id
)
SELECT s.*, c.name
FROM summed AS s
JOIN companies AS c ON c.id = s.id
WHERE CAST(:after_red AS numeric) IS NULL
   OR (-s.red, s.id) > (-CAST(:after_red AS numeric), CAST(:after_id AS uuid))
ORDER BY s.red DESC, s.id
LIMIT :limit
