-- a row is a dead letter that has been resolved long enough: from here on it stands in the audit log
WITH old AS MATERIALIZED (
    SELECT d.id
    FROM dead_letter_queue AS d
    WHERE d.resolved_at < CAST(:before AS timestamptz)
    ORDER BY d.resolved_at, d.id
    LIMIT :at_most
    FOR UPDATE
),
gone AS (
    DELETE FROM dead_letter_queue AS d
    USING old
    WHERE d.id = old.id
    RETURNING d.*
),
kept AS (
    INSERT INTO audit_logs (company_id, user_id, action_type, entity_type, entity_id, previous_values, dedupe_key)
    SELECT g.company_id, g.resolved_by, 'DEAD_LETTER_ARCHIVED', 'BACKGROUND_JOB', g.job_id, to_jsonb(g),
           'DEAD_LETTER_ARCHIVED/' || g.id
    FROM gone AS g
    ON CONFLICT DO NOTHING
)
SELECT id FROM gone
