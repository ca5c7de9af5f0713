-- a row is a clock of an exceedance that is over with its year or month
WITH ended AS (
    SELECT c.id
    FROM compliance_clocks_universal AS c
    WHERE c.id = ANY (CAST(:ids AS uuid[]))
      AND c.status IN ('ACTIVE', 'OVERDUE')
      AND c.metadata ->> 'window_end' < to_char(CAST(:today AS date), 'YYYY-MM-DD')
    ORDER BY c.id
    FOR NO KEY UPDATE
)
UPDATE compliance_clocks_universal AS c
SET status = 'COMPLETED',
    updated_at = clock_timestamp()
FROM ended
WHERE c.id = ended.id
