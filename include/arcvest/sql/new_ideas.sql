-- a row is an idea that has no score yet
SELECT i.id, i.source, i.title, i.summary, i.published_at, i.created_at
FROM idea_queue AS i
WHERE i.status = 'new'
  AND (CAST(:after AS uuid) IS NULL OR i.id > CAST(:after AS uuid))
ORDER BY i.id
LIMIT :limit
