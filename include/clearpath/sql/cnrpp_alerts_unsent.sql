-- a row is an alert on the ledger that nobody was sent and no batch holds, with what its text needs
SELECT a.id, a.contractor_id, a.expiry_date, c.name, c.cnrpp_id
FROM cnrpp_alerts AS a
JOIN contractors AS c ON c.id = a.contractor_id
WHERE a.sent_at IS NULL
  AND a.batch_id IS NULL
  AND NOT a.outcome_unknown
  AND NOT a.past_at_adoption
-- no id of our own: a preview makes others than the run, and would show another order
ORDER BY a.expiry_date, a.contractor_id, a.alert_month
