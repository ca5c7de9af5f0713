-- a row is a generator's hours of a day: what was recorded, or what was approved where nothing ever was
CREATE OR REPLACE VIEW generator_hours WITH (security_invoker = true) AS
SELECT r.company_id, r.generator_id, r.recording_date AS hours_date, r.hours_recorded AS hours
FROM run_hour_records AS r
UNION ALL
SELECT m.company_id, m.generator_id, m.run_date AS hours_date, m.runtime_hours AS hours
FROM runtime_monitoring AS m
WHERE m.validation_status = 'APPROVED'
  AND NOT EXISTS (SELECT FROM run_hour_records AS r WHERE r.generator_id = m.generator_id)
