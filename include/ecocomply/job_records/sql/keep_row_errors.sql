-- a row is what was wrong with one row of a job on a day
INSERT INTO audit_logs (company_id, action_type, entity_type, entity_id, new_values, dedupe_key)
SELECT e.company_id, 'JOB_ROW_ERROR', e.entity_type, e.entity_id,
       jsonb_build_object('job_type', CAST(:job_type AS text), 'reason', e.reason, 'day', CAST(:day AS date)),
       concat_ws(
           '/', 'JOB_ROW_ERROR', CAST(:job_type AS text), e.entity_id,
           encode(sha256(convert_to(e.reason, 'UTF8')), 'hex'), CAST(:day AS date)
       )
FROM jsonb_to_recordset(CAST(:errors AS jsonb))
    AS e (entity_type text, entity_id uuid, company_id uuid, reason text)
ON CONFLICT DO NOTHING
