-- a row is a consignment note whose checks are recorded now; one that has changed since it was read stays out
WITH given AS MATERIALIZED (
    SELECT g.id, g.seen, g.errors, t.pre_validation_status
    FROM jsonb_to_recordset(CAST(:notes AS jsonb)) AS g (id uuid, seen text, status text, errors jsonb)
    -- an application may have enum types of its own for these words
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::consignment_notes, jsonb_build_object('pre_validation_status', g.status)
    ) AS t
),
due AS MATERIALIZED (
    SELECT n.id, g.errors, g.pre_validation_status
    FROM consignment_notes AS n
    JOIN given AS g ON g.id = n.id
    WHERE n.id = ANY (CAST(:ids AS uuid[]))
      AND n.pre_validation_status = 'NOT_VALIDATED'
      AND md5(ROW(n.waste_stream_id, n.carrier_id, n.consignment_date, n.quantity, n.unit, n.ewc_code,
                  n.destination_site_id)::text) = g.seen
    ORDER BY n.id
    FOR NO KEY UPDATE OF n
),
kept AS (
    INSERT INTO validation_executions (
        company_id, validation_rule_id, entity_type, entity_id, execution_date, result, error_message
    )
    SELECT r.company_id, r.id, 'CONSIGNMENT_NOTE', due.id, :as_of, t.result, w.message
    FROM jsonb_to_recordset(CAST(:results AS jsonb)) AS w (note uuid, rule uuid, result text, message text)
    JOIN due ON due.id = w.note
    JOIN validation_rules AS r ON r.id = w.rule
    CROSS JOIN LATERAL jsonb_populate_record(
        NULL::validation_executions, jsonb_build_object('result', w.result)
    ) AS t
    ORDER BY due.id, r.id
    -- checked, changed and checked again by one as-of
    ON CONFLICT (entity_id, validation_rule_id, execution_date) DO UPDATE
    SET result = excluded.result,
        error_message = excluded.error_message
)
UPDATE consignment_notes AS n
SET pre_validation_status = due.pre_validation_status,
    pre_validation_errors = due.errors,
    pre_validated_at = clock_timestamp(),
    updated_at = clock_timestamp()
FROM due
WHERE n.id = due.id
RETURNING n.id
