-- one row with since when the oldest due mail waits, and how many failed in 24 hours; what was past at adoption is neither
SELECT clock_timestamp() AS now,
       due.oldest AS oldest_due,
       failures.number AS failed
FROM (
    SELECT coalesce(max(at), '-infinity') AS at FROM baseline WHERE name = 'adoption'
) AS adopted
CROSS JOIN LATERAL (
    -- a mail of antiquity waits no longer than time can be counted
    SELECT min(greatest(e.scheduled_at, e.next_attempt_at, '1900-01-01 00:00Z')) AS oldest
    FROM email_log AS e
    WHERE (e.status = 'queued' OR (e.status = 'failed' AND e.retry_count < 3 AND NOT e.permanent))
      AND greatest(e.scheduled_at, e.next_attempt_at) <= now()
      AND e.scheduled_at <= least(now(), CAST(:limit_as_of AS timestamptz))
      AND e.scheduled_at > adopted.at
) AS due
CROSS JOIN LATERAL (
    SELECT count(*) AS number
    FROM email_log AS e
    WHERE e.status IN ('failed', 'abandoned')
      AND e.updated_at > greatest(adopted.at, clock_timestamp() - interval '24 hours')
) AS failures
