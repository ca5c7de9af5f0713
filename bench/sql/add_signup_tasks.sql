-- a row is a task that is due, of each type in turn, each for a registration of its own
INSERT INTO scheduled_task ("taskType", payload, "scheduledAt")
SELECT (ARRAY['signup.reminder.early', 'signup.reminder.late', 'signup.alert.internal'])[1 + n % 3],
       jsonb_build_object(
           'sessionId', 'session-' || n, 'name', 'Person ' || n, 'email', 'person' || n || '@example.test',
           'companyName', 'Company ' || n
       ),
       now() - interval '1 hour' + n * interval '1 millisecond'
FROM generate_series(1, CAST(:tasks AS integer)) AS n
