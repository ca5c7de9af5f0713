-- a row is a job that none follows, with the reason, which the operators are told of once
UPDATE scheduled_jobs AS j
SET recurrence_ended = e.reason,
    ending_told = j.ending_told AND NOT (e.is_news AND j.ending_cause IS NULL)
FROM unnest(CAST(:ids AS uuid[]), CAST(:reasons AS text[]), CAST(:news AS boolean[])) AS e (id, reason, is_news)
WHERE j.id = e.id
