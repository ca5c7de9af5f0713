-- a row is an idea with what its pipeline has saved of it
SELECT i.id, i.status::text AS status, i.title, i.summary, i.source, i.source_name, i.url, i.published_at,
       i.pipeline_data
FROM idea_queue AS i
WHERE i.id = CAST(:idea AS uuid)
