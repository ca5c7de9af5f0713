CASE CAST(:state AS text)
        WHEN 'open' THEN q.resolved_at IS NULL
        WHEN 'retried' THEN q.resolution::text = 'RETRIED'
        WHEN 'permanent' THEN q.resolution::text = 'PERMANENT_FAILURE'
        ELSE TRUE
    END
    AND (CAST(:job_type AS text) IS NULL OR j.job_type = CAST(:job_type AS text))
    AND (CAST(:company_ids AS uuid[]) IS NULL OR q.company_id = ANY (CAST(:company_ids AS uuid[])))
    AND (CAST(:letter_ids AS uuid[]) IS NULL OR q.id = ANY (CAST(:letter_ids AS uuid[])))
    AND (
        CAST(:words AS text) IS NULL
        OR position(lower(CAST(:words AS text)) IN lower(q.error_message)) > 0
        OR q.id::text = lower(CAST(:words AS text))
        OR q.job_id::text = lower(CAST(:words AS text))
    )
    AND (CAST(:cause AS text) IS NULL OR {cause_id} = CAST(:cause AS text))
