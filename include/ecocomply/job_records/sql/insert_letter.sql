-- one row: the dead letter of a job, which names it from then on
WITH letter AS (
    INSERT INTO dead_letter_queue (
        job_id, company_id, error_message, error_stack, error_context, retry_count, last_attempted_at
    )
    VALUES (
        :job_id,
        (SELECT c.id FROM companies AS c WHERE c.id = CAST(:company_id AS uuid)),
        :error_message,
        :error_stack,
        CAST(:error_context AS jsonb),
        :retry_count,
        clock_timestamp()
    )
    ON CONFLICT DO NOTHING
    RETURNING id, company_id
),
named AS (
    UPDATE background_jobs AS q
    SET dead_letter_queue_id = letter.id
    FROM letter
    WHERE q.id = :job_id
)
SELECT letter.id, letter.company_id FROM letter
