UPDATE obligations SET past_at_adoption = true
WHERE deadline_date < :today AND status::text NOT IN ('COMPLETED', 'NOT_APPLICABLE')
