CREATE POLICY {policy} ON {table} TO ecocomply_service USING (true) WITH CHECK (true)
