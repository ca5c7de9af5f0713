-- A materialised view knows no policies: the user's role reads it through this one alone.
CREATE OR REPLACE VIEW company_compliance_dashboard WITH (security_barrier = true) AS
SELECT d.*
FROM compliance_clock_dashboard AS d
WHERE d.company_id = ANY ((SELECT ecocomply_companies())::uuid[])
