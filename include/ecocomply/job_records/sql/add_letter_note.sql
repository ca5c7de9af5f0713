-- a row is an open dead letter with one line more to its notes
UPDATE dead_letter_queue AS d
SET resolution_notes = concat_ws(E'\n', d.resolution_notes, CAST(:line AS text))
WHERE d.id = :id
  AND d.resolved_at IS NULL
