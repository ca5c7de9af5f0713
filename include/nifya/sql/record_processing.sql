-- a row is a subscription with what became of this run; a run of a later instant keeps its word
WITH said AS (
    SELECT w.subscription_id, w.status, w.error, w.seen
    FROM unnest(CAST(:ids AS uuid[]), CAST(:statuses AS text[]), CAST(:errors AS text[]), CAST(:seen AS timestamptz[]))
        AS w (subscription_id, status, error, seen)
    JOIN subscriptions AS s ON s.id = w.subscription_id
),
known AS (
    UPDATE subscription_processing AS p
    SET status = CASE said.status
            WHEN 'completed' THEN 'completed'
            WHEN 'failed' THEN 'failed'
            ELSE 'pending'
        END,
        last_run_at = :as_of,
        -- what was read on the way counts, though the run did not come to its end
        last_success_at = greatest(p.last_success_at, said.seen),
        error = said.error,
        failures_in_row = CASE
            WHEN said.status = 'completed' THEN 0
            WHEN said.status <> 'failed' OR NOT :is_run THEN p.failures_in_row
            -- another try of the same run is no further run
            WHEN p.status::text = 'failed' AND p.last_run_at = :as_of THEN p.failures_in_row
            ELSE p.failures_in_row + 1
        END,
        updated_at = clock_timestamp()
    FROM said
    WHERE p.subscription_id = said.subscription_id
      AND coalesce(p.last_run_at, '-infinity') <= :as_of
)
INSERT INTO subscription_processing
    (subscription_id, status, last_run_at, last_success_at, error, failures_in_row)
SELECT said.subscription_id,
       CASE said.status WHEN 'completed' THEN 'completed' WHEN 'failed' THEN 'failed' ELSE 'pending' END,
       :as_of,
       said.seen,
       said.error,
       CASE WHEN said.status = 'failed' AND :is_run THEN 1 ELSE 0 END
FROM said
WHERE NOT EXISTS (SELECT 1 FROM subscription_processing AS p WHERE p.subscription_id = said.subscription_id)
ON CONFLICT DO NOTHING
