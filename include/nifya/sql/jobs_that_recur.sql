-- a row is a recurring job that has ended, with the state of the subscription that it is for
SELECT j.id,
       coalesce(j.series_id, j.id) AS series_id,
       j.schedule,
       j.next_run_at,
       CASE
           WHEN j.type <> 'process-subscription' THEN 'none'
           WHEN s.id IS NULL THEN 'deleted'
           WHEN s.active IS NOT TRUE THEN 'inactive'
           ELSE 'active'
       END AS subscription
FROM scheduled_jobs AS j
LEFT JOIN subscriptions AS s
    ON j.type = 'process-subscription'
   AND s.id = CASE
       WHEN j.data ->> 'subscriptionId' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
           THEN CAST(j.data ->> 'subscriptionId' AS uuid)
   END
WHERE j.id = ANY (CAST(:ids AS uuid[]))
  AND j.schedule IS NOT NULL
  AND jsonb_typeof(j.schedule) <> 'null'
ORDER BY j.next_run_at, j.id
