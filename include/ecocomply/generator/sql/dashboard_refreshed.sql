-- the dashboard shows the clocks
REFRESH MATERIALIZED VIEW compliance_clock_dashboard
