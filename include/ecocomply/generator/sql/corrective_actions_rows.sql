-- a row is what a site does about something that went wrong
INSERT INTO corrective_actions (
    id, site_id, corrective_action_name, lifecycle_phase, status, created_by, created_at, updated_at
)
SELECT pg_temp.make_id('action', s), pg_temp.make_id('site', s),
       pg_temp.pick('action', s, ARRAY['Interceptor overflow', 'Missed sample', 'Noise complaint']), 'ACTION',
       'IN_PROGRESS', pg_temp.make_id('user', 9 * (pg_temp.company_of_site(s) - 1) + 3),
       pg_temp.at(pg_temp.today() - 40, 9), pg_temp.at(pg_temp.today() - 20, 9)
FROM generate_series(1, pg_temp.sites()) AS s
