-- a row is a subscription as it stands, with what its earlier runs have left
SELECT s.id, s.user_id, s.type_id, s.active, to_jsonb(s.prompts) AS prompts,
       -- what was published before the platform came was the application's to tell
       greatest(s.created_at, (SELECT b.at FROM baseline AS b WHERE b.name = 'adoption')) AS begun_at,
       p.last_run_at, p.last_success_at
FROM subscriptions AS s
LEFT JOIN subscription_processing AS p ON p.subscription_id = s.id
WHERE s.id = ANY (CAST(:ids AS uuid[]))
ORDER BY s.id
