-- a row is an open dead letter of a job that has been tried again since
UPDATE dead_letter_queue AS d
SET resolved_at = clock_timestamp(),
    resolution = 'RETRIED',
    resolution_notes = concat_ws(E'\n', d.resolution_notes, CAST(:notes AS text))
WHERE d.job_id = :job_id
  AND d.resolved_at IS NULL
