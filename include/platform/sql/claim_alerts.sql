-- a row is an alert that is mailed now; one whose answer was lost, only while the provider's key holds
WITH waiting AS (
    SELECT id, delivery_claimed_at IS NOT NULL AS in_doubt
    FROM alert
    WHERE delivered_at IS NULL
      AND NOT no_address
      AND (
          delivery_claimed_at IS NULL
          OR delivery_claimed_at BETWEEN clock_timestamp() - make_interval(secs => 3600 * (:key_hours - 1))
                                     AND clock_timestamp() - interval '2 minutes'
      )
    ORDER BY created_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE alert AS a
SET delivery_claimed_at = coalesce(a.delivery_claimed_at, clock_timestamp()),
    delivery_attempts = a.delivery_attempts + 1
FROM waiting
WHERE a.id = waiting.id
RETURNING a.id, a.subject, a.body, waiting.in_doubt
