-- a row is one of the three things to be done; at every fourth site all are done
INSERT INTO corrective_action_items (
    id, corrective_action_id, item_title, due_date, assigned_to, status, completed_at, created_at, updated_at
)
SELECT pg_temp.make_id('item', 3 * s + k), pg_temp.make_id('action', s),
       (ARRAY['Find the cause', 'Train the shift', 'Change the procedure'])[k],
       pg_temp.today() - 14 + pg_temp.roll('item', 3 * s + k, 20),
       CASE WHEN k < 3 THEN pg_temp.make_id('user', 9 * (pg_temp.company_of_site(s) - 1) + 4 + k) END,
       CASE WHEN s % 4 = 0 THEN 'COMPLETED' ELSE (ARRAY['COMPLETED', 'IN_PROGRESS', 'PENDING'])[k] END,
       CASE WHEN s % 4 = 0 OR k = 1 THEN pg_temp.at(pg_temp.today() - 2, 12) END,
       pg_temp.at(pg_temp.today() - 40, 9), pg_temp.at(pg_temp.today() - 2, 12)
FROM generate_series(1, pg_temp.sites()) AS s
CROSS JOIN generate_series(1, 3) AS k
