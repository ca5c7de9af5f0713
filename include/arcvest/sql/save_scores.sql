-- a row is a new idea that gets its score; below the least it is rejected
WITH due AS (
    SELECT i.id, s.score, s.parts::jsonb AS parts
    FROM unnest(CAST(:ids AS uuid[]), CAST(:scores AS numeric[]), CAST(:parts AS text[])) AS s (id, score, parts)
    JOIN idea_queue AS i ON i.id = s.id
    WHERE i.status = 'new'
    ORDER BY i.id
    FOR UPDATE OF i
)
UPDATE idea_queue AS i
SET status = CASE
        WHEN due.score < CAST(:least AS numeric) THEN 'rejected'
        WHEN due.score >= CAST(:least AS numeric) THEN 'scored'
        -- never reached: it gives the words the column's type, which may be an enum
        ELSE i.status
    END,
    score = due.score,
    score_parts = due.parts,
    scored_at = clock_timestamp(),
    updated_at = clock_timestamp()
FROM due
WHERE i.id = due.id
RETURNING i.id, i.status::text AS status
