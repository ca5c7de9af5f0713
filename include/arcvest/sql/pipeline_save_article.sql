-- a row is an article that is new in the calendar; an idea that has one keeps it
INSERT INTO content_calendar (idea_id, title, html, excerpt, tags, image_prompt)
SELECT i.id, :title, :html, :excerpt, CAST(:tags AS jsonb), :image_prompt
FROM idea_queue AS i
WHERE i.id = CAST(:idea AS uuid)
  AND NOT EXISTS (SELECT FROM content_calendar AS c WHERE c.idea_id = i.id)
ON CONFLICT DO NOTHING
