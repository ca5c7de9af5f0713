-- a row is a job that waits, with the import that it is about, and the database's time
SELECT q.*, now() AS now,
       i.status::text AS import_status, i.confirmed_at AS import_confirmed_at, i.company_id AS import_company_id
FROM background_jobs AS q
LEFT JOIN excel_imports AS i
    ON q.job_type = 'EXCEL_IMPORT_PROCESSING'
    AND i.id = CASE
        WHEN q.payload ->> 'import_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
            THEN CAST(q.payload ->> 'import_id' AS uuid)
    END
WHERE q.id = ANY (CAST(:ids AS uuid[]))
  AND q.status = 'PENDING'
ORDER BY array_position(CAST(:ids AS uuid[]), q.id)
