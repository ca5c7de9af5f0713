-- one row: the job of that id
SELECT q.* FROM background_jobs AS q WHERE q.id = :id
