-- an obligation is as its earliest open deadline is; one that is done for good is completed
UPDATE obligations AS o
SET deadline_date = coalesce(due.first_open, due.last_done),
    status = CASE
        WHEN pg_temp.roll('applies', due.n, 50) = 0 THEN 'NOT_APPLICABLE'
        WHEN due.first_open IS NULL THEN 'COMPLETED'
        WHEN due.first_open < pg_temp.today() THEN 'OVERDUE'
        WHEN pg_temp.roll('begun', due.n, 6) = 0 THEN 'IN_PROGRESS'
        WHEN due.first_open <= pg_temp.today() + 7 THEN 'DUE_SOON'
        ELSE 'PENDING' END
FROM (
    SELECT n, d.obligation_id, min(d.due_date) FILTER (WHERE d.status <> 'COMPLETED') AS first_open,
           max(d.due_date) AS last_done
    FROM generate_series(1, pg_temp.obligations()) AS n
    JOIN deadlines AS d ON d.obligation_id = pg_temp.make_id('obligation', n)
    GROUP BY n, d.obligation_id
) AS due
WHERE o.id = due.obligation_id
