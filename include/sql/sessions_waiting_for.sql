-- one row with true: some session of this database waits for a lock that session `pid` holds
SELECT true
FROM pg_stat_activity
WHERE datname = current_database()
  AND wait_event_type = 'Lock'
  AND CAST(:pid AS integer) = ANY (pg_blocking_pids(pid))
LIMIT 1
