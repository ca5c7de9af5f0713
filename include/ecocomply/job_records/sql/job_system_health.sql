-- one row: what the health of the jobs is judged by
SELECT (SELECT count(*) FROM background_jobs WHERE health_status = 'STALE' AND status = 'RUNNING') AS stale_jobs,
       (SELECT count(*) FROM dead_letter_queue WHERE resolved_at IS NULL) AS unresolved_dlq,
       (
           SELECT count(*)
           FROM background_jobs
           WHERE status = 'FAILED'
             AND created_at >= CAST(:since AS timestamptz)
             AND created_at < CAST(:until AS timestamptz)
       ) AS recent_failures
