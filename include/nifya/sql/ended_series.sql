-- a row is a job after which its series ended unasked, which nobody was told of yet, with its cause, if any
SELECT j.id, coalesce(j.series_id, j.id) AS series_id, j.type, j.recurrence_ended AS error, j.ending_cause AS cause
FROM scheduled_jobs AS j
WHERE NOT j.ending_told
ORDER BY j.id
