-- a row is a company's import of obligations, confirmed or waiting for that
INSERT INTO excel_imports (
    id, site_id, user_id, file_name, file_path, file_size_bytes, status, row_count, valid_count, error_count,
    success_count, confirmed_by, confirmed_at, completed_at, created_at, updated_at
)
SELECT pg_temp.make_id('import', c), pg_temp.make_id('site', 3 * c), pg_temp.make_id('user', 9 * c - 7),
       'obligations.xlsx', 'imports/' || pg_temp.make_id('company', c) || '/' || pg_temp.make_id('site', 3 * c) || '/'
           || pg_temp.make_id('import', c) || '/original.xlsx',
       20000 + c, CASE WHEN done THEN 'COMPLETED' ELSE 'PENDING_REVIEW' END, 40, 38, 2, CASE WHEN done THEN 38 END,
       CASE WHEN done THEN pg_temp.make_id('user', 9 * c - 7) END,
       CASE WHEN done THEN pg_temp.at(pg_temp.today() - 200, 11) END,
       CASE WHEN done THEN pg_temp.at(pg_temp.today() - 200, 12) END,
       pg_temp.at(pg_temp.today() - 200, 10), pg_temp.at(pg_temp.today() - 200, 12)
FROM generate_series(1, pg_temp.companies()) AS c
CROSS JOIN LATERAL (SELECT pg_temp.roll('import', c, 3) > 0 AS done) AS import
