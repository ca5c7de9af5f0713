-- a row is a company whose name holds the words that were searched for
SELECT c.id
FROM companies AS c
WHERE strpos(lower(c.name), :words) > 0
ORDER BY lower(c.name), c.id
LIMIT :limit
