-- a row is the ledger's note of an alert that a generated contractor's last one was sent for
INSERT INTO cnrpp_alerts (id, contractor_id, alert_month, expiry_date, run_as_of, sent_at, created_at)
SELECT md5('clearpath alert ' || n)::uuid,
       c.id,
       date_trunc('month', c.last_cnrpp_alert_sent_at AT TIME ZONE 'UTC' - interval '6 hours')::date,
       c.cnrpp_expiry_date,
       c.last_cnrpp_alert_sent_at,
       c.last_cnrpp_alert_sent_at,
       c.last_cnrpp_alert_sent_at
FROM generate_series(0, CAST(:sessions AS integer) / 50) AS n
JOIN contractors AS c ON c.id = md5('clearpath contractor ' || n)::uuid
WHERE c.last_cnrpp_alert_sent_at IS NOT NULL
ON CONFLICT DO NOTHING
