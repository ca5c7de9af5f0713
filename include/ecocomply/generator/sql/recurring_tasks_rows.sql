-- a row is one of a site's two tasks that come back
INSERT INTO recurring_tasks (
    id, site_id, title, frequency, anchor_date, next_due_date, default_assignee_id, created_at, updated_at
)
SELECT pg_temp.make_id('recurring task', n), pg_temp.make_id('site', (n + 1) / 2),
       CASE WHEN n % 2 = 0 THEN 'Walk the site boundary' ELSE 'Back up the monitoring data' END,
       CASE WHEN n % 2 = 0 THEN 'WEEKLY' ELSE 'MONTHLY' END,
       -- so that today is a date of its series
       CASE WHEN n % 2 = 0 THEN pg_temp.today() - 364 ELSE (pg_temp.today() - interval '1 year')::date END,
       CASE WHEN pg_temp.roll('task', n, 4) = 0 THEN NULL ELSE pg_temp.today() END,
       pg_temp.make_id('user', 9 * (pg_temp.company_of_site((n + 1) / 2) - 1) + 7),
       pg_temp.at(pg_temp.today() - 364, 9), pg_temp.at(pg_temp.today() - 7, 9)
FROM generate_series(1, 2 * pg_temp.sites()) AS n
