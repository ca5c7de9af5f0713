-- a row is a job with what it came to
UPDATE background_jobs SET result = CAST(:result AS jsonb) WHERE id = :id
