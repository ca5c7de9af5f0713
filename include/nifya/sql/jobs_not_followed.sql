-- a row is a job that has ended and whose series has no open job
SELECT j.id
FROM scheduled_jobs AS j
WHERE j.id = ANY (CAST(:ids AS uuid[]))
  AND NOT EXISTS (
      SELECT
      FROM scheduled_jobs AS o
      WHERE (o.series_id = coalesce(j.series_id, j.id) OR o.id = j.series_id)
        AND o.id <> j.id
        AND o.status IN ('pending', 'processing')
  )
