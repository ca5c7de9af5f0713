-- a row is a module that can be offered, with the words that speak for it; an application may have these as JSON
SELECT m.id, m.module_name, k.keywords
FROM modules AS m
CROSS JOIN LATERAL (SELECT to_jsonb(m.cross_sell_keywords) AS listed) AS j
CROSS JOIN LATERAL (
    SELECT jsonb_agg(e.word ORDER BY e.place) FILTER (WHERE jsonb_typeof(e.word) = 'string') AS keywords
    FROM jsonb_array_elements(CASE WHEN jsonb_typeof(j.listed) = 'array' THEN j.listed END)
        WITH ORDINALITY AS e (word, place)
) AS k
WHERE m.is_active
  AND k.keywords IS NOT NULL
ORDER BY m.module_code, m.id
