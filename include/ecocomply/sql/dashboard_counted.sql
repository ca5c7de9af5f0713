-- a row is how many rows the dashboard has and how many clocks they count, and whether there is a clock at all
SELECT count(*) AS shown, coalesce(sum(d.total_clocks), 0) AS clocks,
       EXISTS (SELECT FROM compliance_clocks_universal) AS has_clocks
FROM compliance_clock_dashboard AS d
