-- a row is a type of task with how many of it failed in the last 24 hours
SELECT left(t."taskType", 80) AS task_type, count(*) AS tasks
FROM scheduled_task AS t
WHERE t.status = 'failed'
  AND t."updatedAt" > now() - interval '24 hours'
GROUP BY 1
ORDER BY 1
