-- a row is a site and module of a company with the clocks that the dashboard has of them
SELECT d.site_id, s.name AS site_name, d.module_id, m.module_code, m.module_name, d.total_clocks AS total,
       d.red_count AS red, d.amber_count AS amber, d.green_count AS green, d.active_count AS active,
       d.overdue_count AS overdue, d.completed_count AS completed, d.next_target_date, d.upcoming_target_dates
FROM compliance_clock_dashboard AS d
LEFT JOIN sites AS s ON s.id = d.site_id
LEFT JOIN modules AS m ON m.id = d.module_id
WHERE d.company_id = :company_id
ORDER BY d.red_count DESC, lower(s.name) NULLS LAST, m.module_code NULLS LAST, d.dashboard_key
LIMIT :limit
