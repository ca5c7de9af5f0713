SELECT count(*) FROM {table} WHERE company_id IS NULL
