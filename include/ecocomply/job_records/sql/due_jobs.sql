-- a row is a job that waits and may start: the most urgent first, companies in turn, then the oldest
SELECT waiting.id
FROM (
    SELECT q.id, q.urgency, q.scheduled_for,
           row_number() OVER (
               PARTITION BY q.urgency, q.company_id ORDER BY q.scheduled_for, q.id
           ) AS turn
    FROM background_jobs AS q
    WHERE q.status = 'PENDING'
      AND CASE
          WHEN CAST(:job_id AS uuid) IS NULL THEN q.scheduled_for <= least(now(), CAST(:not_after AS timestamptz))
          ELSE q.id = CAST(:job_id AS uuid)
      END
) AS waiting
ORDER BY waiting.urgency DESC, waiting.turn, waiting.scheduled_for, waiting.id
