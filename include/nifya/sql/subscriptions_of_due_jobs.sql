-- a row is a subscription that jobs are for which a run would take now, or has just taken
SELECT DISTINCT CAST(j.data ->> 'subscriptionId' AS uuid) AS id
FROM scheduled_jobs AS j
WHERE j.type = 'process-subscription'
  AND j.data ->> 'subscriptionId' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
  AND (
      j.status = 'processing'
      OR j.id = CAST(:job_id AS uuid)
      OR (
          j.status = 'pending'
          AND coalesce(j.retry_at, j.next_run_at) <= least(now(), CAST(:not_after AS timestamptz))
      )
  )
ORDER BY id
