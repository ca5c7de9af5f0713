(CAST(:status AS text) IS NULL OR q.{status}::text = CAST(:status AS text))
    AND (CAST(:kind AS text) IS NULL OR {kind}::text = CAST(:kind AS text))
    AND (
        CAST(:words AS text) IS NULL
        OR position(lower(CAST(:words AS text)) IN lower(coalesce(q.{error}, ''))) > 0
        OR q.{key}::text = CAST(:words AS text)
    )
    AND (CAST(:cause AS text) IS NULL OR {cause_id} = CAST(:cause AS text))
