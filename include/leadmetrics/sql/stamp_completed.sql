-- a row is a task that was completed in this transaction; a failed one has no such stamp, an earlier loss no trace
UPDATE scheduled_task AS t
SET "completedAt" = clock_timestamp(),
    "errorMessage" = NULL
WHERE t.id = ANY (CAST(:ids AS text[]))
