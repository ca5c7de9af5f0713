GRANT {privileges} ON {table} TO {role}
