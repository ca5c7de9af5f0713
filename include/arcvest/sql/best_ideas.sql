-- a row is an idea that may be selected, best first; of equals the newest
SELECT i.id
FROM idea_queue AS i
WHERE i.status = 'scored'
  AND i.id <> ALL (CAST(:seen AS uuid[]))
  AND coalesce(i.published_at, i.created_at) >= CAST(:not_before AS timestamptz)
ORDER BY i.score DESC NULLS LAST, i.published_at DESC NULLS LAST, i.id
LIMIT greatest(CAST(:limit AS integer), 0)
