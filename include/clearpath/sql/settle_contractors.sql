-- a row is a contractor with whether the month's alert was put on the ledger, and whether it became inactive
WITH due AS (
    SELECT c.id, c.cnrpp_expiry_date, c.last_cnrpp_alert_sent_at
    FROM contractors AS c
    WHERE c.id = ANY (CAST(:ids AS uuid[]))
      AND c.status = 'active'
      AND c.cnrpp_expiry_date <= :last_day
    ORDER BY c.id
    FOR UPDATE
),
alerted AS (
    INSERT INTO cnrpp_alerts (contractor_id, alert_month, expiry_date, run_as_of)
    SELECT id, :month, cnrpp_expiry_date, :as_of
    FROM due
    WHERE coalesce(last_cnrpp_alert_sent_at, '-infinity') < :month_start
      -- a run of an earlier month that comes late tells of nothing that a later month has told
      AND NOT EXISTS (SELECT 1 FROM cnrpp_alerts AS l WHERE l.contractor_id = due.id AND l.alert_month > :month)
    ON CONFLICT (contractor_id, alert_month) DO NOTHING
    RETURNING contractor_id
),
deactivated AS (
    UPDATE contractors AS c
    SET status = 'inactive',
        updated_at = clock_timestamp()
    FROM due
    WHERE c.id = due.id
      AND due.cnrpp_expiry_date < :today
    RETURNING c.id
)
SELECT due.id,
       a.contractor_id IS NOT NULL AS alerted,
       d.id IS NOT NULL AS deactivated
FROM due
LEFT JOIN alerted AS a ON a.contractor_id = due.id
LEFT JOIN deactivated AS d ON d.id = due.id
ORDER BY due.id
