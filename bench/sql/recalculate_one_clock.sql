-- a row is a clock whose days left are counted anew, one at a time
UPDATE compliance_clocks_universal
SET days_remaining = :days, criticality = :criticality, status = :status, updated_at = clock_timestamp()
WHERE id = :id
