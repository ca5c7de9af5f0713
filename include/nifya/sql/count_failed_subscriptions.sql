-- a row is a subscription whose scheduled run has failed, after all its tries
UPDATE subscription_processing AS p
SET failures_in_row = p.failures_in_row + 1,
    updated_at = clock_timestamp()
WHERE p.status::text = 'failed'
  AND p.subscription_id IN (
      SELECT CAST(j.data ->> 'subscriptionId' AS uuid)
      FROM scheduled_jobs AS j
      WHERE j.id = ANY (CAST(:ids AS uuid[]))
        AND j.type = 'process-subscription'
        AND j.data ->> 'subscriptionId' ~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
  )
