CREATE POLICY {policy} ON {table} TO ecocomply_user
USING ({company} = ANY ((SELECT ecocomply_companies())::uuid[]))
WITH CHECK ({company} = ANY ((SELECT ecocomply_companies())::uuid[]))
