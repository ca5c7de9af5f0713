-- a row is a record that was set aside once and has found its place since
UPDATE lab_set_aside
SET resolved_at = clock_timestamp()
WHERE lab_record_key = ANY (CAST(:keys AS text[]))
  AND resolved_at IS NULL
