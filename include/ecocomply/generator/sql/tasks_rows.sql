-- a row is a task of last week
INSERT INTO tasks (
    id, recurring_task_id, title, due_date, assigned_to, status, completed_at, created_at, updated_at
)
SELECT pg_temp.make_id('task', n), r.id, r.title, pg_temp.today() - 7, r.default_assignee_id,
       CASE WHEN done THEN 'COMPLETED' ELSE 'PENDING' END, CASE WHEN done THEN pg_temp.at(pg_temp.today() - 7, 15) END,
       pg_temp.at(pg_temp.today() - 7, 3), pg_temp.at(pg_temp.today() - 7, 15)
FROM generate_series(1, 2 * pg_temp.sites()) AS n
JOIN recurring_tasks AS r ON r.id = pg_temp.make_id('recurring task', n)
CROSS JOIN LATERAL (SELECT pg_temp.roll('task done', n, 3) > 0 AS done) AS task
