-- a row is an alert of the ledger, the latest first
SELECT
    a.id, a.cause, a.kind::text AS kind, a.severity, a.dag_id, a.run_id, a.task_id, a.subject, a.body,
    a.created_at, a.delivered_at, a.delivery_claimed_at, a.delivery_attempts, a.last_error, a.no_address
FROM alert AS a
WHERE (a.dag_id IS NULL OR a.dag_id = ANY (CAST(:dag_ids AS text[])))
  AND (NOT CAST(:undelivered AS boolean) OR (a.delivered_at IS NULL AND NOT a.no_address))
  AND (
      CAST(:after_at AS timestamptz) IS NULL
      OR (a.created_at, a.id) < (CAST(:after_at AS timestamptz), CAST(:after_id AS uuid))
  )
ORDER BY a.created_at DESC, a.id DESC
LIMIT :limit
