-- a row is an open job whose series failed several times in a row, which nobody was told of yet, with its cause, if any
SELECT j.id,
       coalesce(j.series_id, j.id) AS series_id,
       j.type,
       j.data,
       j.failures_in_row,
       j.failing_since,
       j.failing_cause AS cause,
       (
           SELECT p.error
           FROM scheduled_jobs AS p
           WHERE (p.series_id = j.series_id OR p.id = j.series_id)
             AND p.status = 'failed'
           ORDER BY p.next_run_at DESC
           LIMIT 1
       ) AS error
FROM scheduled_jobs AS j
WHERE j.failures_in_row >= 3
  AND NOT j.failing_told
  AND j.status IN ('pending', 'processing')
ORDER BY j.failing_since, j.id
