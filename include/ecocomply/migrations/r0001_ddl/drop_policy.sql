DROP POLICY IF EXISTS {policy} ON {table}
