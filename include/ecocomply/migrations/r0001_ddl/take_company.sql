UPDATE {table} AS t SET company_id = p.company_id
FROM {parent} AS p
WHERE t.company_id IS NULL AND p.id = t.{column}
