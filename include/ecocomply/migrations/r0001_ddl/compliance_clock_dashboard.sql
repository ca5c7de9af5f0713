CREATE MATERIALIZED VIEW compliance_clock_dashboard AS
SELECT
    -- one text, never null: what a refresh beside readers tells rows apart by
    concat_ws('/', c.company_id, coalesce(c.site_id::text, '-'), coalesce(c.module_id::text, '-')) AS dashboard_key,
    c.company_id,
    c.site_id,
    c.module_id,
    count(*) AS total_clocks,
    count(*) FILTER (WHERE c.criticality = 'RED') AS red_count,
    count(*) FILTER (WHERE c.criticality = 'AMBER') AS amber_count,
    count(*) FILTER (WHERE c.criticality = 'GREEN') AS green_count,
    count(*) FILTER (WHERE c.status = 'ACTIVE') AS active_count,
    count(*) FILTER (WHERE c.status = 'OVERDUE') AS overdue_count,
    count(*) FILTER (WHERE c.status = 'COMPLETED') AS completed_count,
    min(c.target_date) FILTER (WHERE c.status = 'ACTIVE') AS next_target_date,
    (array_agg(c.target_date ORDER BY c.target_date, c.id) FILTER (WHERE c.status = 'ACTIVE'))[1:10]
        AS upcoming_target_dates
FROM compliance_clocks_universal AS c
GROUP BY c.company_id, c.site_id, c.module_id
