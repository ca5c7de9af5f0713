-- a row is a module that can be offered, with the words that speak for it
SELECT m.id, m.module_name, m.cross_sell_keywords AS keywords
FROM modules AS m
WHERE m.is_active
  AND cardinality(m.cross_sell_keywords) > 0
ORDER BY m.module_code, m.id
