-- a row is a person whose address or name holds the words that were searched for
SELECT u.id
FROM users AS u
WHERE strpos(lower(u.email), :words) > 0
   OR strpos(lower(u.full_name), :words) > 0
ORDER BY lower(u.email), u.id
LIMIT :limit
