-- a row is a dead letter on which a person has decided; the decision stands in the audit log too
WITH resolved AS (
    UPDATE dead_letter_queue AS d
    SET resolved_at = clock_timestamp(),
        resolution = :resolution,
        resolved_by_airflow_user = :actor,
        resolution_notes = nullif(concat_ws(E'\n', d.resolution_notes, CAST(:notes AS text)), '')
    WHERE d.id = ANY (CAST(:ids AS uuid[]))
      AND d.resolved_at IS NULL
    RETURNING d.id, d.job_id, d.company_id, d.resolution_notes
),
told AS (
    INSERT INTO audit_logs (company_id, action_type, entity_type, entity_id, new_values)
    SELECT r.company_id, 'DEAD_LETTER_RESOLVED', 'BACKGROUND_JOB', r.job_id,
           jsonb_build_object(
               'dead_letter_id', r.id,
               'resolution', CAST(:resolution AS text),
               'airflow_user', CAST(:actor AS text),
               'notes', r.resolution_notes
           )
    FROM resolved AS r
)
SELECT id FROM resolved
